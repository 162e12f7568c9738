// SPDX-License-Identifier: BSD-3-Clause
// The requests of a stage, in order: with sizes and costs alone, and with work that the
// test defines.

#include "tests/actors/staged.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <limits>
#include <set>

namespace troupe::stage_core_test {

using Catch::Matchers::Message;
using tiny::staged;
using lines = std::vector<std::string>;

namespace {

/// A last stage's work that waits for inputs and labels, and whose loss the test sets.
class losing_work : public simulated_stage {
public:
  using simulated_stage::simulated_stage;

  void put_input(int microbatch, buffer) override { inputs.insert(microbatch); }
  void put_labels(int microbatch, buffer) override { labels.insert(microbatch); }
  bool has_inputs(int m) const override {
    return inputs.contains(m) && labels.contains(m);
  }
  std::optional<loss_sum> end_forward(int) override { return loss_sum{loss, 0}; }

  std::set<int> inputs, labels;
  double loss = 1;
};

run_plan three_stages(int microbatches = 2) {
  return tiny::simulation(one_f_one_b(), {3, microbatches, 3});
}

constexpr position first{0, 0, 0}, middle{0, 0, 1}, last{0, 0, 2};
constexpr op f = op::forward, b = op::backward, u = op::update;

} // namespace

TEST_CASE("the first stage asks for data when it starts, and with every forward",
          "[stage]") {
  staged<> s{three_stages(), first}, other{three_stages(), middle};
  CHECK(s.port.news().empty());
  s.core.start();
  CHECK(s.port.news() == lines{"demands"});
  s.give(0);
  CHECK(s.port.news() == lines{"arrived F0"});
  CHECK(s.run(f, 0) == lines{"demands", "computes F0", "sends on 0", "done F0"});
  other.core.start();
  CHECK(other.port.news().empty());
}

TEST_CASE("a forward in the middle is sent on, and its gradient sent back", "[stage]") {
  staged<> s{three_stages(), middle};
  s.give(0);
  CHECK(s.run(f, 0) == lines{"arrived F0", "computes F0", "sends on 0", "done F0"});
  s.give_gradient(0);
  CHECK(s.port.news() == lines{"arrived B0"});
  CHECK(s.run(b, 0) == lines{"computes B0", "sends back 0", "done B0"});
}

TEST_CASE(
  "the last stage's own backward need not arrive, and nobody is sent a gradient "
  "by the first",
  "[stage]") {
  staged<> end{three_stages(), last};
  end.give(0);
  CHECK(end.run(f, 0) == lines{"arrived F0", "computes F0", "done F0"});
  staged<> start{three_stages(), first};
  start.give(0);
  start.run(f, 0);
  start.give_gradient(0);
  CHECK(start.run(b, 0) == lines{"arrived B0", "computes B0", "done B0"});
}

TEST_CASE("a split backward sends its gradient after I, and nothing after W",
          "[stage]") {
  staged<> s{three_stages(), middle};
  s.give(0);
  s.run(f, 0);
  CHECK(s.run(op::input_gradient, 0)
        == lines{"computes I0", "sends back 0", "done I0"});
  CHECK(s.run(op::weight_gradient, 0) == lines{"computes W0", "done W0"});
}

TEST_CASE("a forward arrives when all of its inputs have, in any order", "[stage]") {
  staged<losing_work> s{three_stages(), last};
  s.give(0);
  CHECK(s.port.news().empty());
  s.core.receive(labels{s.header(1), {}});
  CHECK(s.port.news().empty());
  s.core.receive(labels{s.header(0), {}});
  CHECK(s.port.news() == lines{"arrived F0"});
  s.give(1);
  CHECK(s.port.news() == lines{"arrived F1"});
}

TEST_CASE("a forward whose version is not made arrives when it is", "[stage]") {
  staged<> s{three_stages(1), middle};
  s.give(0);
  s.run(f, 0);
  s.give(1);
  CHECK(s.port.news().empty());
  s.give_gradient(0);
  s.run(b, 0);
  s.core.run(s.of(u, 0));
  CHECK(s.port.news() == lines{"writes update_request U0 of stage 1"});
  CHECK(s.core.explain().input == "its update");
  CHECK(s.core.explain().peer == "optimizer of stage 1");
  CHECK(s.port.works.empty()); // the optimizer shard runs the update
  s.give_updated();
  CHECK(s.port.news() == lines{"arrived F1", "done U0"});
  s.run(f, 1);
  CHECK(s.port.measured.back().version == 1);
}

TEST_CASE("what an action took is of its own version", "[stage]") {
  staged<> s{tiny::simulation(*find_schedule("pipedream"), {2, 3, 2}), first};
  s.give(0);
  s.give(1);
  s.run(f, 0);
  s.run(f, 1);
  s.give_gradient(0);
  s.core.run(s.of(b, 0));
  s.port.run_work(s.core, 10, 30);
  const auto& took = s.port.measured.back();
  CHECK(took.action == s.of(b, 0));
  CHECK(took.start == 10);
  CHECK(took.end == 30);
  CHECK(took.version == 0);
  CHECK_FALSE(took.part);
  s.core.run(s.of(u, 0));
  const auto letters = s.port.mail();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].to == performer{role::optimizer_shard, first});
  const auto& asked = std::get<mail::update_request>(letters[0].body);
  CHECK(asked.samples == 1);
  CHECK(asked.measured.version == 1);
  CHECK(asked.measured.gradients == 1);
  CHECK(asked.measured.versions_alive == 2); // microbatch 1 reads the older one
  s.give_updated();
}

TEST_CASE("shards meet between the pieces of a forward", "[stage]") {
  auto plan = three_stages();
  plan.mesh[axis::tensor] = 2;
  plan.work.simulated().sums = 1;
  staged<> s{plan, middle};
  s.give(0);
  s.port.news();
  s.core.run(s.of(f, 0));
  CHECK(s.port.news() == lines{"computes F0"});
  s.port.run_work(s.core);
  CHECK(s.port.news()
        == lines{"writes collective_message 0 round 0 from 0 to 1", "paused F0"});
  const auto waits = s.core.explain();
  CHECK(waits.actor == "stage 1 (tensor shard 0)");
  CHECK(waits.input == "a part of the array of F0");
  CHECK(waits.peer == "stage 1 (tensor shard 1)");
  auto message = std::get<collective_message>(s.port.mail()[0].body);
  std::swap(message.from, message.to);
  s.core.receive(
    mail::meeting_message{{role::stage, middle}, meeting_kind::shards, message});
  CHECK(s.port.news() == lines{"arrived F0"});
  CHECK(s.run(f, 0) == lines{"computes F0", "sends on 0", "done F0"});
}

TEST_CASE("a stage whose sums take time goes on when its sum is over", "[stage]") {
  auto plan = three_stages();
  plan.mesh[axis::tensor] = 2;
  plan.work.simulated().sums = 1;
  plan.work.simulated().sum = 20;
  plan.machine.sum_rate = 1e9;
  staged<> s{plan, middle};
  s.give(0);
  s.core.run(s.of(f, 0));
  s.port.run_work(s.core);
  auto message = std::get<collective_message>(s.port.mail()[0].body);
  s.port.news();
  std::swap(message.from, message.to);
  s.core.receive(
    mail::meeting_message{{role::stage, middle}, meeting_kind::shards, message});
  CHECK(s.port.news() == lines{"asks for a sum of 5"});
  CHECK(s.core.explain().input == "the end of its sum for F0");
  CHECK(s.core.explain().peer.empty());
  s.port.do_sum(s.core);
  CHECK(s.port.news() == lines{"arrived F0"});
  CHECK(s.run(f, 0) == lines{"computes F0", "sends on 0", "done F0"});
}

TEST_CASE("a backward tells of each bucket that it completes, the last of an update",
          "[stage]") {
  auto plan = three_stages();
  plan.mesh[axis::data] = 2;
  plan.exchange = find_exchange("zero1");
  plan.work.simulated().buckets = 3;
  staged<> s{plan, last};
  for (const int m : {0, 1}) {
    s.give(m);
    s.run(f, m);
  }
  CHECK(s.run(b, 0) == lines{"computes B0", "sends back 0", "done B0"});
  CHECK(s.run(b, 1)
        == lines{"computes B1", "tells of bucket 2", "tells of bucket 1",
                 "tells of bucket 0", "sends back 1", "done B1"});
  s.core.run(s.of(u, 1));
  CHECK(s.port.news() == lines{"writes update_request U1 of stage 2"});
}

TEST_CASE("a schedule that is not eager tells of all buckets when it updates",
          "[stage]") {
  auto plan = tiny::simulation(chimera({.eager = false}), {2, 2, 1});
  plan.work.simulated().buckets = 2;
  staged<> s{plan, {0, 0, 1}};
  s.give(0);
  s.run(f, 0);
  CHECK(s.run(b, 0) == lines{"computes B0", "sends back 0", "done B0"});
  s.core.run(s.of(u, 0));
  CHECK(s.port.news()
        == lines{"tells of bucket 0", "tells of bucket 1",
                 "writes update_request U0 of stage 1"});
}

TEST_CASE("a snapshot is reported when the update is there that it is of", "[stage]") {
  auto plan = three_stages(1);
  plan.copies.evaluate_every = 2;
  staged<> s{plan, middle};
  for (const int m : {0, 1}) {
    s.give(m);
    s.run(f, m);
    s.give_gradient(m);
    s.port.news();
    CHECK(s.run(b, m).back() == "done B" + std::to_string(m));
    s.core.run(s.of(u, m));
    s.port.news();
    s.give_updated();
    if (m == 0) {
      CHECK(s.port.news() == lines{"done U0"});
      continue;
    }
    CHECK(s.port.news() == lines{"computes U0"});
    CHECK(s.core.explain().input == "its device to copy its parameters");
    s.port.run_work(s.core);
    CHECK(s.port.news() == lines{"reports a snapshot after 2", "done U1"});
  }
}

TEST_CASE("a snapshot that no update precedes is made before the next action",
          "[stage]") {
  auto plan = tiny::simulation(*find_schedule("ampnet"), {1, 1, 4});
  plan.copies.evaluate_every = 1;
  staged<> s{plan, first};
  s.give(0);
  s.give(1);
  s.run(f, 0);
  s.run(b, 0);
  CHECK(
    s.run(f, 1)
    == lines{"computes U0", "demands", "computes F1", "reports a snapshot after 1"});
}

TEST_CASE("a loss is reported by the update that covers its microbatch", "[stage]") {
  staged<losing_work> s{tiny::simulation(*find_schedule("ampnet"), {3, 2, 3}), last};
  for (const int m : {0, 1}) {
    s.give(m);
    s.core.receive(labels{s.header(m), {}});
  }
  s.port.news();
  CHECK(s.run(f, 0) == lines{"computes F0", "done F0"});
  // no backward for this one comes
  CHECK(s.run(f, 1) == lines{"computes F1", "done F1"});
  s.run(b, 0);
  s.core.run(s.of(u, 0));
  const auto news = s.port.news();
  REQUIRE(news.size() > 1);
  CHECK(news.front() == "reports the loss of 0");
  CHECK(std::ranges::count(news, "reports the loss of 1") == 0);
}

TEST_CASE("a loss that is not finite names its microbatch and version", "[stage]") {
  staged<losing_work> s{three_stages(1), last};
  s.give(0);
  s.core.receive(labels{s.header(0), {}});
  s.port.news();
  CHECK(s.run(f, 0) == lines{"computes F0", "done F0"});
  s.work->loss = std::numeric_limits<double>::quiet_NaN();
  s.run(b, 0);
  s.core.run(s.of(u, 0));
  s.give_updated();
  s.give(1);
  s.core.receive(labels{s.header(1), {}});
  s.core.run(s.of(f, 1));
  CHECK_THROWS_MATCHES(
    s.port.run_work(s.core), std::runtime_error,
    Message("the loss of microbatch 1 is not finite (nan) on weight version 1; a lower "
            "learning rate or clipping may help"));
}

TEST_CASE("what a stage has in the end is of an update that was made", "[stage]") {
  staged<> s{three_stages(1), last};
  s.give(0);
  s.run(f, 0);
  s.run(b, 0);
  CHECK(s.core.collect().updates == 0);
  s.core.run(s.of(u, 0));
  CHECK_THROWS_MATCHES(s.core.collect(), std::logic_error,
                       Message("its update 1 was not made"));
  s.give_updated();
  const auto all = s.core.collect();
  CHECK(all.updates == 1);
  CHECK(all.samples == 1);
  CHECK(all.where == last);
}

TEST_CASE("a stage says what it waits for", "[stage]") {
  staged<> s{tiny::simulation(one_f_one_b(), {3, 1, 1}), middle},
    start{three_stages(), first}, end{three_stages(), last};
  const auto explained = [](staged<>& of, const std::string& what,
                            const std::string& on) {
    CHECK(of.core.explain().input == what);
    CHECK(of.core.explain().peer == on);
  };
  explained(s, "an activation", "stage 0");
  explained(start, "an activation", "data_source");
  s.give(0);
  s.run(f, 0);
  explained(s, "the gradient of microbatch 0", "stage 2");
  s.give_gradient(0);
  s.run(b, 0);
  explained(s, "", "");
  end.give(0);
  end.run(f, 0);
  explained(end, "its scheduler to start its backward", "");
}

} // namespace troupe::stage_core_test
