// SPDX-License-Identifier: BSD-3-Clause
// Messages of another process that no actor of the run can have sent.

#include "actors/nodes/message_validation.hpp"

#include "actors/nodes/receivers.hpp"
#include "plan/gpu_groups.hpp"
#include "plan/stage_experts.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::mail_rules_test {

namespace {

using kind = wire::address::kind;

const run_plan& plan() {
  static const auto result =
    tiny::training_on({.data = 2}, one_f_one_b(), {3, 4, 2}, clock_kind::real);
  return result;
}

const message_validation& rules() {
  static const message_validation result{std::make_shared<const run_plan>(plan())};
  return result;
}

/// A message with the tensor sizes that the plan prescribes.
wire::addressed_message to(const wire::address& whom, wire::actor_message what) {
  wire::addressed_message result{whom, std::move(what), {}};
  result.tensors = tensor_bytes(plan(), result);
  return result;
}

bool passes(const wire::addressed_message& mail) {
  return rules().validation_error(mail).empty();
}

wire::address stage(int number, int data = 0) {
  return {.actor = kind::stage, .where = {data, 0, number}};
}

tensor_header header(int number, int microbatch = 1) {
  return {.step = 0,
          .microbatch = microbatch,
          .pipeline = 0,
          .stage = number,
          .samples = plan().samples_of(0, microbatch),
          .values = plan().work->whole.layers[1]->output(),
          .version = 0};
}

const wire::address coordinator{.actor = kind::coordinator};
const wire::address recorder{.actor = kind::recorder};

} // namespace

TEST_CASE("an activation is one of the plan's, in every number", "[nodes]") {
  CHECK(passes(to(stage(1), activation{header(1), {}})));
  CHECK(passes(to(stage(1), gradient{header(1), {}})));
  CHECK_FALSE(passes(to(stage(0), activation{header(0), {}})));
  CHECK_FALSE(passes(to(stage(2), gradient{header(2), {}})));
  CHECK_FALSE(passes(to(stage(1), activation{header(2), {}})));
  CHECK_FALSE(passes(to(stage(1, 1), activation{header(1), {}})));
  CHECK_FALSE(passes(to(stage(1), labels{header(1), {}})));
  CHECK_FALSE(passes(to(stage(3), activation{header(3), {}})));
  CHECK_FALSE(passes(to(stage(-1), activation{header(-1), {}})));
  for (const auto number : {&tensor_header::samples, &tensor_header::values})
    for (const std::int64_t change : {-1, 1, 1 << 20}) {
      auto wrong = header(1);
      wrong.*number += change;
      CHECK_FALSE(passes(to(stage(1), activation{wrong, {}})));
    }
  for (const int microbatch : {-1, 8, 1 << 30}) {
    auto wrong = header(1);
    wrong.microbatch = microbatch;
    CHECK_FALSE(passes(to(stage(1), activation{wrong, {}})));
  }
}

// The address sanitizer notices a read beyond the sizes of stages.
TEST_CASE("a tensor for an actor without a position is refused, wherever it points",
          "[nodes]") {
  for (const auto whom : {kind::coordinator, kind::recorder, kind::scheduler})
    for (const int number : {0, 1, 1 << 20, (1 << 30) - 1}) {
      const wire::address far{.actor = whom, .where = {0, number, number}};
      CHECK_FALSE(passes(to(far, activation{header(1), {}})));
      CHECK_FALSE(passes(to(far, gradient{header(1), {}})));
    }
}

TEST_CASE("tensors have the sizes that the plan gives them, none is left out",
          "[nodes]") {
  auto mail = to(stage(1), activation{header(1), {}});
  for (const std::int64_t bytes : {std::int64_t{0}, mail.tensors[0] - 4,
                                   mail.tensors[0] + 4, std::int64_t{1} << 40}) {
    auto wrong = mail;
    wrong.tensors = {bytes};
    CHECK_FALSE(passes(wrong));
  }
}

TEST_CASE("GPUs are called to take what their edges give, and get no other",
          "[nodes]") {
  message_validation of{std::make_shared<const run_plan>(plan())};
  const auto passes = [&](wire::actor_message what, int data = 0) {
    return of.validation_error(to(stage(1, data), std::move(what))).empty();
  };
  auto call = header(1), of_other = header(1);
  call.call = 3;
  of_other.pipeline = 1;
  CHECK(to(stage(1), activation{call, {}}).tensors == std::vector<std::int64_t>{0});
  CHECK_FALSE(passes(activation{call, {}})); // no GPU channel is known
  known_groups known;
  const auto all = exchanging_groups(plan());
  for (std::size_t g = 0; g < all.size(); ++g)
    if (all[g].members == std::vector<position>{{0, 0, 0}, {0, 0, 1}})
      known.ids[static_cast<int>(g)] = {};
  REQUIRE(known.ids.size() == 1);
  of.set_groups(known);
  CHECK(passes(activation{call, {}}));
  CHECK_FALSE(passes(activation{header(1), {}}));
  CHECK(passes(gradient{header(1), {}})); // from the stage above
  CHECK_FALSE(passes(gradient{call, {}}));
  CHECK(passes(activation{of_other, {}}, 1)); // from the other replica's stage
  of_other.call = 3;
  CHECK_FALSE(passes(activation{of_other, {}}, 1));
  auto last = header(2);
  last.values = plan().work->whole.rows;
  const auto to_last = [&](const tensor_header& h) {
    return of.validation_error(to(stage(2), labels{h, {}})).empty();
  };
  CHECK(to_last(last));
  last.call = 0;
  CHECK_FALSE(to_last(last)); // no GPU gives labels
}

TEST_CASE("ranks, positions and versions are those of the plan", "[nodes]") {
  for (const int rank : {-1, plan().ranks(), 1 << 30}) {
    CHECK_FALSE(passes(to(coordinator, mail::finished{rank})));
    CHECK_FALSE(passes(to(coordinator, mail::started{rank, 1})));
    CHECK_FALSE(passes(to(recorder, mail::sums{rank, {}})));
    CHECK_FALSE(passes(to(recorder, mail::samples{rank, {}})));
  }
  CHECK(passes(to(coordinator, mail::finished{5})));
  rank_sums sums;
  sums.stages.push_back({.stage = 3});
  CHECK_FALSE(passes(to(recorder, mail::sums{0, sums})));
  CHECK_FALSE(
    passes(to(recorder, mail::samples{0, {{.action = {op::forward, 0, 3, 0}}}})));
  for (const nanoseconds off_processor_time : {30, 31})
    CHECK(
      passes(to(recorder, mail::samples{0,
                                        {{.action = {op::forward, 0, 0, 0},
                                          .start = 10,
                                          .end = 40,
                                          .off_processor_time = off_processor_time}}}))
      == (off_processor_time == 30));
  for (const int version : {0, -1, 1 << 20})
    CHECK_FALSE(rules()
                  .validation_error(
                    {recorder, mail::version_made{{0, 0, 1}, version, {}, {}}, {}})
                  .empty());
  CHECK_FALSE(
    rules()
      .validation_error({coordinator, mail::collected{.where = {9, 0, 0}}, {}})
      .empty());
  CHECK_FALSE(
    rules()
      .validation_error({coordinator, mail::collected{.where = {0, 0, 0}}, {}})
      .empty());
  CHECK_FALSE(rules()
                .validation_error({coordinator, mail::snapshot{1, {0, 0, 7}, {}}, {}})
                .empty());
}

TEST_CASE("copies for a checkpoint are those that the stage saves", "[nodes]") {
  auto saves = plan();
  saves.copies.checkpoint_every = 1;
  saves.work->optimizer.name = "adamw";
  saves.work->optimizer.momentum = 0;
  const message_validation rules{std::make_shared<const run_plan>(saves)};
  const auto passes = [&](mail::saved what) {
    wire::addressed_message mail{coordinator, std::move(what), {}};
    if (exists(saves, {.actor = kind::stage,
                       .where = std::get<mail::saved>(mail.message).where}))
      mail.tensors = tensor_bytes(saves, mail);
    return rules.validation_error(mail).empty();
  };
  const auto copies = [](position where, std::vector<int> ages, int arrays) {
    mail::saved result{.batches = 1, .where = where, .ages = std::move(ages)};
    result.versions.resize(result.ages.size());
    result.state.resize(static_cast<std::size_t>(arrays));
    return result;
  };
  CHECK(passes(copies({0, 0, 1}, {0}, 2)));
  CHECK(passes(copies({1, 0, 1}, {}, 0))); // the first data replica saves this one
  for (const auto& wrong :
       {copies({0, 0, 1}, {}, 2), copies({0, 0, 1}, {0}, 1), copies({0, 0, 1}, {0}, 3),
        copies({0, 0, 1}, {1}, 2), copies({0, 0, 1}, {0, 1}, 2),
        copies({1, 0, 1}, {0}, 0), copies({0, 0, 9}, {0}, 2)})
    CHECK_FALSE(passes(wrong));
  // A stage hands over a whole kept step, whichever data replica the stage is of, or
  // nothing.
  saves.copies.keep_steps = true;
  const message_validation keeping{std::make_shared<const run_plan>(saves)};
  const auto recalls = [&](const mail::saved& what) {
    wire::addressed_message mail{coordinator, mail::kept_state{what}, {}};
    if (exists(saves, {.actor = kind::stage, .where = what.where}))
      mail.tensors = tensor_bytes(saves, mail);
    return keeping.validation_error(mail).empty();
  };
  CHECK(recalls(copies({0, 0, 1}, {0}, 2)));
  CHECK(recalls(copies({1, 0, 1}, {0}, 2)));
  CHECK(recalls(copies({1, 0, 1}, {}, 0)));
  CHECK_FALSE(
    rules
      .validation_error({coordinator, mail::kept_state{copies({1, 0, 1}, {}, 0)}, {}})
      .empty()); // the plan keeps no steps
  for (const auto& wrong :
       {copies({1, 0, 1}, {}, 2), copies({1, 0, 1}, {0}, 1), copies({1, 0, 1}, {1}, 2),
        copies({1, 0, 1}, {0, 1}, 2), copies({0, 0, 9}, {0}, 2)})
    CHECK_FALSE(recalls(wrong));

  auto few = copies({0, 0, 1}, {0}, 2);
  few.versions.clear();
  CHECK_FALSE(passes(few));
  CHECK(rules.validation_error({coordinator, mail::copied{1, {0, 0, 1}}, {}}).empty());
  CHECK_FALSE(
    rules.validation_error({coordinator, mail::copied{1, {0, 0, 9}}, {}}).empty());
}

TEST_CASE("a letter has no more than its largest array, and says so twice alike",
          "[nodes]") {
  const position other{1, 0, 1};
  const wire::address whom{.actor = kind::optimizer_shard, .where = other};
  const auto letter = [&](std::int64_t values, std::int64_t bytes) {
    return to(whom, mail::meeting_message{
                      {role::optimizer_shard, other},
                      meeting_kind::sums,
                      collective_message{0, 0, 0, 1, {0, 1}, values, {}, bytes},
                      traffic::gradients,
                      bytes});
  };
  CHECK(passes(letter(3, 12)));
  CHECK_FALSE(passes(letter(3, 16)));
  CHECK_FALSE(passes(letter(0, 0)));
  CHECK_FALSE(passes(letter(-3, -12)));
  CHECK_FALSE(passes(letter(1 << 28, std::int64_t{4} << 28)));
}

TEST_CASE("calls are of members of a group alone", "[nodes]") {
  const auto plan = tiny::training_on({.data = 2, .tensor = 2, .by_sequence = true},
                                      one_f_one_b(), {1, 2, 1}, clock_kind::real);
  message_validation of{std::make_shared<const run_plan>(plan)};
  const auto call = [&](position whom, meeting_kind about, int from, int member,
                        std::int64_t values = 0) {
    const auto role = about == meeting_kind::sums ? role::optimizer_shard : role::stage;
    const auto where =
      about == meeting_kind::sums ? kind::optimizer_shard : kind::stage;
    wire::addressed_message result{
      {.actor = where, .where = whom},
      mail::meeting_message{
        {role, whom},
        about,
        collective_message{0, 0, from, member, {}, values, {}, 4 * values, 0},
        traffic::tensor,
        4 * values},
      {}};
    result.tensors = tensor_bytes(plan, result);
    return of.validation_error(result).empty();
  };
  const position shard{0, 0, 0, 1}, other{1, 0, 0, 1};
  CHECK_FALSE(call(shard, meeting_kind::shards, 0, 1)); // no group has this exchange
  known_groups known;
  const auto all = exchanging_groups(plan);
  for (std::size_t g = 0; g < all.size(); ++g)
    if (all[g].kind == meeting_kind::shards && all[g].members.front().data == 0)
      known.ids[static_cast<int>(g)] = {};
  of.set_groups(known);
  CHECK(call(shard, meeting_kind::shards, 0, 1));
  CHECK_FALSE(call(shard, meeting_kind::shards, 1, 0)); // addressed to the other shard
  CHECK_FALSE(call(shard, meeting_kind::shards, 1, 1));
  CHECK_FALSE(call(shard, meeting_kind::shards, -1, 1));
  CHECK_FALSE(call(shard, meeting_kind::shards, 2, 1));
  CHECK_FALSE(call(shard, meeting_kind::shards, 0, 7));
  // messages carry the other's arrays
  CHECK_FALSE(call(other, meeting_kind::shards, 0, 1));
  CHECK_FALSE(call(shard, meeting_kind::sums, 0, 1));
  // A call covers all values that go one way: more than one message's.
  const auto& l = *plan.work->whole.layers.front();
  const auto all_of_it = l.output() * plan.samples_of(0, 0);
  CHECK(call(shard, meeting_kind::shards, 0, 1, all_of_it));
  CHECK_FALSE(call(shard, meeting_kind::shards, 0, 1, std::int64_t{1} << 40));
}

TEST_CASE("a letter about a meeting that nobody has there is refused", "[nodes]") {
  for (int about = 0; about < meeting_kinds; ++about)
    for (const auto whom : {kind::stage, kind::optimizer_shard})
      for (const bool clips : {true, false}) {
        const position where{1, 0, 1};
        mail::meeting_message letter{
          {role::stage, where}, static_cast<meeting_kind>(about), {}};
        if (clips)
          letter.body = mail::clip_by{0, 1};
        else
          letter.body = mail::norm_part{where, 1, {}};
        CHECK_FALSE(passes(to({.actor = whom, .where = where}, letter)));
      }
}

TEST_CASE("rows of any count take one kind of buffer, and no more than their largest",
          "[nodes]") {
  const auto moe = tiny::training_on({.data = 2, .expert = 2, .experts = true},
                                     one_f_one_b(), {1, 2, 1}, clock_kind::real);
  const message_validation of{std::make_shared<const run_plan>(moe)};
  const int expert = experts_of(moe, 0).front();
  const auto host = host_of(moe, expert, {0, 0, 0});
  const auto width = moe.work->whole.experts.front().expert->input();
  const auto rows = [&](std::int64_t count) {
    wire::addressed_message result{
      {.actor = kind::expert, .where = host, .number = expert},
      mail::meeting_message{
        {role::expert, host, expert},
        meeting_kind::experts,
        mail::rows_to_expert{{op::forward, 0, 0, 0}, 1, count, {}, {}},
        traffic::experts,
        count * width * 4},
      {}};
    result.tensors = tensor_bytes(moe, result);
    return result;
  };
  REQUIRE(of.validation_error(rows(1)).empty());
  REQUIRE(of.validation_error(rows(2)).empty());
  CHECK(of.capacity_of(rows(1), width * 4) == of.capacity_of(rows(2), width * 8));
  CHECK(of.capacity_of(rows(2), width * 8) >= 2 * width);
  CHECK(of.validation_error(rows(0)).empty());
  CHECK_FALSE(of.validation_error(rows(-1)).empty());
  CHECK_FALSE(of.validation_error(rows(1 << 20)).empty());
}

} // namespace troupe::mail_rules_test
