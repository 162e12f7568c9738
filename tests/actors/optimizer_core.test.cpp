// SPDX-License-Identifier: BSD-3-Clause
// The requests of an optimizer shard, in order, and the results from gradients.

#include "actors/updates/optimizer_core.hpp"

#include "plan/stage_buckets.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/actors/written_port.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>

namespace troupe::optimizer_core_test {

using Catch::Approx;
using lines = std::vector<std::string>;

namespace {

constexpr position first{0, 0, 0};

action update(int direction = 0, int stage = 0) {
  return {op::update, direction, stage, 1};
}

mail::meeting_message to_shard(mail::meeting_message::content what) {
  return {{role::optimizer_shard, first}, meeting_kind::directions, std::move(what)};
}

/// One direction's part of an update in which nothing is computed.
mail::meeting_message request(int direction = 0, int stage = 0) {
  return to_shard(mail::update_request{.measured = {.action = update(direction, stage)},
                                       .samples = 2,
                                       .gradients = {},
                                       .from = {},
                                       .to = {}});
}

/// An optimizer shard that computes nothing, and the shard's port.
struct counted_shard {
  counted_shard(const run_plan& made, position at)
    : plan(std::make_shared<const run_plan>(made)),
      where(at),
      core(plan, where, port, {}) {
    // nop
  }

  std::shared_ptr<const run_plan> plan;
  position where;
  tiny::written_port port;
  optimizer_core core;
};

/// Delivers messages between some optimizer shards; messages to others are dropped.
void exchange(const std::vector<counted_shard*>& all) {
  for (auto* from : all)
    for (auto& letter : from->port.mail())
      for (auto* to : all)
        if (letter.to == performer{role::optimizer_shard, to->where})
          to->core.receive(std::move(letter));
}

run_plan simulated(const std::string& schedule_name = "1f1b", int stages = 2) {
  return tiny::simulation(*find_schedule(schedule_name), {stages, 2, 2});
}

} // namespace

TEST_CASE("an update without others computes, and tells its stage", "[optimizer]") {
  counted_shard s{simulated(), first};
  s.core.receive(request());
  CHECK(s.port.news() == lines{"computes U1"});
  s.port.run_work(s.core, 5, 9, 3);
  CHECK(s.port.news() == lines{"writes updated"});
  const auto letters = s.port.mail();
  REQUIRE(letters.size() == 1);
  CHECK(std::get<mail::updated>(letters[0].body).start == 5);
  CHECK(std::get<mail::updated>(letters[0].body).end == 9);
  CHECK(std::get<mail::updated>(letters[0].body).off_processor_time == 3);
  CHECK(letters[0].to == performer{role::stage, first});
  s.core.receive(request()); // and the next one
  CHECK(s.port.news() == lines{"computes U1"});
}

TEST_CASE("an update waits for sums that take time, and copies take none",
          "[optimizer]") {
  auto plan = simulated();
  plan.mesh[axis::data] = 2;
  plan.exchange = find_exchange("ring");
  plan.work.simulated().gradient = 40;
  plan.machine.sum_rate = 1e9;
  counted_shard a{plan, first}, c{plan, {1, 0, 0}};
  for (auto* shard : {&a, &c}) {
    shard->core.receive(to_shard(mail::bucket_ready{0, 0, {}}));
    shard->core.receive(request());
    shard->port.news();
  }
  exchange({&a, &c});
  CHECK(a.port.news() == lines{"asks for a sum of 5"}); // half of ten
  CHECK(a.core.explain().input == "the end of its sum for U1");
  a.port.do_sum(a.core);
  c.port.do_sum(c.core);
  CHECK(a.port.news() == lines{"writes collective_message 0 round 1 from 0 to 1"});
  exchange({&a, &c});
  CHECK(a.port.news() == lines{"arrived U1"});
}

TEST_CASE("by ZeRO 1 an update waits for the sum, and ends when all is gathered",
          "[optimizer]") {
  auto plan = simulated();
  plan.mesh[axis::data] = 2;
  plan.exchange = find_exchange("zero1");
  counted_shard a{plan, first}, c{plan, {1, 0, 0}};
  a.core.receive(to_shard(mail::bucket_ready{0, 0, {}}));
  CHECK(a.port.news() == lines{"writes collective_message 0 round 0 from 0 to 1"});
  a.core.receive(request());
  CHECK(a.port.news() == lines{"paused U1"});
  const auto waits = a.core.explain();
  CHECK(waits.actor == "optimizer of stage 0");
  CHECK(waits.input == "the gradients of data replica 1 of U1");
  CHECK(waits.peer == "optimizer of stage 0 (data replica 1)");
  c.core.receive(to_shard(mail::bucket_ready{0, 0, {}}));
  exchange({&a, &c});
  CHECK(a.port.news() == lines{"arrived U1"});
  a.core.run(update());
  CHECK(a.port.news() == lines{"computes U1"});
  a.port.run_work(a.core);
  CHECK(a.port.news()
        == lines{"writes collective_message 0 round 0 from 0 to 1", "paused U1"});
  CHECK(a.port.measured.back().ends_in == version_made);
  CHECK(a.core.explain().input == "the parameters of data replica 1 of U1");
  c.core.receive(request());
  c.port.run_work(c.core);
  exchange({&a, &c});
  CHECK(a.port.news() == lines{"arrived U1"});
  a.core.run(update());
  a.port.run_work(a.core);
  CHECK(a.port.news() == lines{"computes U1", "writes updated"});
}

TEST_CASE("the first direction lets others go first, and the second copies its version",
          "[optimizer]") {
  counted_shard s{simulated("chimera"), first};
  const auto bucket = [&](int direction) {
    s.core.receive(to_shard(mail::bucket_ready{direction, 0, {}}));
  };
  bucket(1);
  s.core.receive(request(1));
  CHECK(s.port.news() == lines{"paused U1"});
  bucket(0);
  CHECK(s.port.news().empty());
  s.core.receive(request(0));
  CHECK(s.port.news() == lines{"paused U1", "arrived U1"});
  CHECK(s.port.works.empty());
  s.core.run(update(0));
  s.port.run_work(s.core);
  CHECK(s.port.news()
        == lines{"computes U1", "writes version_there", "writes updated"});
  auto letters = s.port.mail();
  REQUIRE(letters.size() == 2);
  CHECK(letters[1].to == performer{role::stage, {0, 0, 0}});
  s.core.receive(std::move(letters[0]));
  CHECK(s.port.news() == lines{"arrived U1"});
  s.core.run(update(1));
  s.port.run_work(s.core);
  CHECK(s.port.news() == lines{"computes U1", "writes updated"});
  CHECK(s.port.mail()[0].to == performer{role::stage, {0, 1, 0}});
  s.core.receive(request(1)); // of the next update
  CHECK(s.port.news() == lines{"paused U1"});
}

TEST_CASE("servers are pushed to, and their answers end the update", "[optimizer]") {
  auto plan = simulated();
  plan.mesh[axis::data] = 2;
  plan.exchange = find_exchange("server:async");
  counted_shard s{plan, first};
  s.core.receive(request());
  CHECK(s.port.news() == lines{"computes U1"}); // measures the norm
  s.port.run_work(s.core);
  CHECK(s.port.news() == lines{"writes push", "writes push", "paused U1"});
  CHECK(s.core.explain().peer == "parameter server of stage 0 (share 0)");
  const auto answer = [&](int server) {
    s.core.receive(
      {{role::optimizer_shard, first}, meeting_kind::servers, mail::pulled{server}});
  };
  answer(0);
  CHECK(s.port.news().empty());
  answer(1);
  CHECK(s.port.news() == lines{"arrived U1"});
  s.core.run(update());
  s.port.run_work(s.core);
  CHECK(s.port.news() == lines{"computes U1", "writes updated"});
}

namespace {

/// An optimizer shard that computes, with plain steps of 0.5, and buckets of each
/// direction. Gradients are 0, and parameters begin as 1.
struct training_shard {
  training_shard(run_plan made, double clip, clip_scope scope)
    : plan(with(std::move(made), clip, scope)),
      core(plan, first, port,
           {.streams = {&on, &on},
            .state = std::make_shared<optimizer>(
              plan->work->optimizer, layers_of(*plan, first), 100, memory)}) {
    const auto sizes = buckets_of(*plan, first);
    for (int d = 0; d < plan->directions(); ++d) {
      auto& part = parts.emplace_back();
      for (auto* list : {&part.gradients, &part.from, &part.to})
        for (const auto values : sizes) {
          pools.push_back(std::make_unique<pool>("a test's bucket", 1, values, memory));
          list->push_back(pools.back()->acquire());
        }
      for (std::size_t b = 0; b < sizes.size(); ++b)
        std::fill_n(part.from[b].data(), sizes[b], 1.F);
      part.measured.action = update(d);
      part.samples = 2;
    }
  }

  static std::shared_ptr<const run_plan> with(run_plan made, double clip,
                                              clip_scope scope) {
    made.work->optimizer = {.name = "sgd", .rate = 0.5};
    made.work->optimizer.clip = clip;
    made.work->optimizer.scope = scope;
    return std::make_shared<const run_plan>(std::move(made));
  }

  /// The first values of the version's bucket 1 in a direction.
  std::vector<float> made(std::size_t direction, std::size_t count) const {
    const auto* const at = parts[direction].to[1].data();
    return {at, at + count};
  }

  std::shared_ptr<const run_plan> plan;
  stream on;
  memory_account memory;
  std::vector<std::unique_ptr<pool>> pools;
  tiny::written_port port;
  std::vector<mail::update_request> parts; // of each direction
  optimizer_core core;
};

run_plan trained(const schedule& sch, int stages) {
  return tiny::training_on({}, sch, {stages, 2}, clock_kind::virtual_time);
}

} // namespace

TEST_CASE("an update steps down the mean gradient, and costs what its values do",
          "[optimizer]") {
  training_shard s{trained(one_f_one_b(), 1), 0, clip_scope::network};
  s.parts[0].gradients[1].data()[1] = 4;
  s.core.receive(to_shard(s.parts[0]));
  double values = 0;
  for (const auto bucket : buckets_of(*s.plan, first))
    values += static_cast<double>(bucket);
  CHECK(s.port.works.front().first.operations == 12 * values);
  s.port.run_work(s.core);
  CHECK(s.made(0, 3) == std::vector<float>{1, 0, 1}); // 1 - 0.5 * 4 / 2
}

TEST_CASE("a stage that clips by itself makes its mean gradient as long as it may be",
          "[optimizer]") {
  training_shard s{trained(one_f_one_b(), 1), 0.25, clip_scope::stage};
  s.parts[0].gradients[0].data()[0] = 6;
  s.parts[0].gradients[1].data()[0] = -8; // both are 5 a sample
  s.core.receive(to_shard(s.parts[0]));
  s.port.run_work(s.core);
  CHECK(s.made(0, 1)[0] == Approx(1 + 0.5 * 4 * 0.25 / 5).epsilon(1e-6));
  CHECK(s.parts[0].to[0].data()[0] == Approx(1 - 0.5 * 3 * 0.25 / 5).epsilon(1e-6));
}

TEST_CASE("where the norm is of all stages, an update is applied when it is known",
          "[optimizer]") {
  training_shard s{trained(one_f_one_b(), 2), 1, clip_scope::network};
  s.parts[0].gradients[1].data()[0] = 6;
  s.core.receive(to_shard(s.parts[0]));
  s.port.run_work(s.core);
  CHECK(s.port.news() == lines{"computes U1", "writes norm_part", "paused U1"});
  CHECK(s.port.measured.back().ends_in == norm_measured);
  const auto part = std::get<mail::norm_part>(s.port.mail()[0].body);
  CHECK(part.samples == 2);
  double sum = 0;
  for (const double squares : part.squares)
    sum += squares;
  CHECK(sum == 36);
  s.core.receive(
    {{role::optimizer_shard, first}, meeting_kind::norm, mail::clip_by{0.5, 1}});
  CHECK(s.port.news() == lines{"arrived U1"});
  s.core.run(update());
  s.port.run_work(s.core);
  CHECK(s.made(0, 2) == std::vector<float>{0.25F, 1}); // 1 - 0.5 * 0.5 * 6 / 2
}

TEST_CASE("both directions' gradients make one version, which both get",
          "[optimizer]") {
  training_shard s{trained(chimera(), 2), 0, clip_scope::network};
  const auto buckets = static_cast<int>(buckets_of(*s.plan, first).size());
  for (int d = 0; d < 2; ++d)
    for (int b = 0; b < buckets; ++b)
      s.core.receive(to_shard(mail::bucket_ready{
        d, b,
        s.parts[static_cast<std::size_t>(d)].gradients[static_cast<std::size_t>(b)]}));
  s.parts[0].gradients[1].data()[0] = 1;
  s.parts[1].gradients[1].data()[0] = 3;
  s.parts[0].gradients[1].data()[1] = -8;
  s.core.receive(to_shard(s.parts[0]));
  s.core.receive(to_shard(s.parts[1]));
  s.core.run(update(0));
  s.port.run_work(s.core);
  CHECK(s.made(0, 3) == std::vector<float>{0.5, 2, 1}); // of four samples
  CHECK(s.made(1, 3) == std::vector<float>{0, 0, 0});
  for (auto& letter : s.port.mail())
    if (letter.to.kind == role::optimizer_shard)
      s.core.receive(std::move(letter));
  s.core.run(update(1));
  s.port.run_work(s.core);
  CHECK(s.made(1, 3) == std::vector<float>{0.5, 2, 1});
}

TEST_CASE("directions are added once, though their norm is found before the update",
          "[optimizer]") {
  training_shard s{trained(chimera(), 2), 1, clip_scope::network};
  const auto buckets = buckets_of(*s.plan, first).size();
  for (auto& part : s.parts)
    for (std::size_t b = 0; b < buckets; ++b)
      s.core.receive(to_shard(mail::bucket_ready{
        part.measured.action.direction, static_cast<int>(b), part.gradients[b]}));
  s.parts[0].gradients[1].data()[0] = 1;
  s.parts[1].gradients[1].data()[0] = 3;
  s.core.receive(to_shard(s.parts[0]));
  CHECK(s.port.news() == lines{"paused U1"});
  s.core.receive(to_shard(s.parts[1]));
  CHECK(s.port.news() == lines{"paused U1", "arrived U1"});
  s.core.run(update(0));
  s.port.run_work(s.core);
  const auto part = std::get<mail::norm_part>(s.port.mail()[0].body);
  CHECK(part.samples == 4);
  s.core.receive(
    {{role::optimizer_shard, first}, meeting_kind::norm, mail::clip_by{0.5, 1}});
  s.core.run(update(0));
  s.port.run_work(s.core);
  CHECK(s.made(0, 2) == std::vector<float>{0.75, 1}); // 1 - 0.5 * 0.5 * 4 / 4
}

} // namespace troupe::optimizer_core_test
