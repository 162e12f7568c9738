// SPDX-License-Identifier: BSD-3-Clause
// The tensors that a stage sends to neighbours by GPUs, and receives from them, step by
// step. A fake communicator and a fake device record requests.

#include "actors/pipeline/stage_channels.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe::stage_edges_test {

using Catch::Matchers::Message;

namespace {

class written_communicator : public communicator {
public:
  void exchange(std::span<const transfer> what) override {
    all.insert(all.end(), what.begin(), what.end());
  }
  void abort() noexcept override {}
  void check() override {
    if (has_failed)
      throw std::runtime_error{"its GPU is gone"};
  }

  std::vector<transfer> all;
  bool has_failed = false;
};

/// A device that launches and ends works when the test says so.
class patient_device : public device {
public:
  void enqueue(work what, on_end ended) override {
    all.push_back({std::move(what), std::move(ended)});
  }
  void stop() override {}
  bool idle() const override { return all.empty(); }

  const std::vector<std::shared_ptr<gpu_completion>>& inputs() const {
    return all.front().first.inputs;
  }

  /// Launches the first work; returns the completion.
  std::shared_ptr<gpu_completion> launch() {
    auto end = std::make_shared<gpu_completion>();
    auto& what = all.front().first;
    what.run();
    what.launched(end);
    return end;
  }

  void end(std::exception_ptr failure = {}) {
    const auto ended = std::move(all.front().second);
    all.pop_front();
    ended({1, 2, std::move(failure)});
  }

private:
  std::deque<std::pair<work, on_end>> all;
};

constexpr std::int64_t values = 6;

/// A stage with channels to the stage above.
struct one_stage {
  explicit one_stage(bool at_launch = true)
    : edges({{}, {{&given}, {&taken}, room, at_launch}},
            [this](const std::exception_ptr& why) {
              try {
                std::rethrow_exception(why);
              } catch (const std::runtime_error& wrong) {
                failures.push_back(wrong.what());
              }
            }) {}

  static tensor_header header(int microbatch, int call = tensor_header::no_call) {
    return {.microbatch = microbatch,
            .stage = 1,
            .samples = 2,
            .values = values / 2,
            .call = call};
  }

  void give(int microbatch, buffer payload, std::shared_ptr<gpu_completion> made = {}) {
    edges.send<activation>(
      {header(microbatch), std::move(payload), std::move(made)},
      [this](activation call) { calls.push_back(std::move(call)); });
  }

  void take(int microbatch, int call, std::shared_ptr<gpu_completion> giver = {}) {
    edges.receive<gradient>({header(microbatch, call), {}, std::move(giver)},
                            [this](gradient g) { there.push_back(std::move(g)); });
  }

  memory_account memory;
  std::shared_ptr<pool> room = std::make_shared<pool>("messages", 2, values, memory);
  written_communicator gives, takes;
  patient_device giving, taking;
  gpu_group given{&gives, nullptr, &giving}, taken{&takes, nullptr, &taking};
  std::vector<std::string> failures;
  std::vector<activation> calls;
  std::vector<gradient> there;
  stage_channels edges;
};

using ends = std::vector<std::shared_ptr<gpu_completion>>;

} // namespace

TEST_CASE("a stage without edges gives nothing, and is not called", "[edges]") {
  stage_channels none{{}, {}};
  CHECK_FALSE(none.can_send<activation>());
  CHECK_FALSE(none.can_send<gradient>());
  CHECK_THROWS_MATCHES(
    none.receive<activation>({one_stage::header(3, 0), {}}, {}), std::logic_error,
    Message(
      "stage 1 is called to receive tensor 0 of microbatch 3, but its GPU receives "
      "no tensors directly"));
  const one_stage some;
  CHECK(some.edges.can_send<activation>());
  CHECK_FALSE(some.edges.can_send<gradient>()); // there is no stage below
}

TEST_CASE("what is given goes behind the pass that makes it", "[edges]") {
  one_stage s;
  const auto made = std::make_shared<gpu_completion>();
  const auto payload = s.room->acquire();
  s.give(4, payload, made);
  CHECK(s.giving.inputs() == ends{made});
  CHECK(s.calls.empty()); // no call before the launch
  const auto end = s.giving.launch();
  REQUIRE(s.gives.all.size() == 1);
  const auto& sent = s.gives.all.front();
  CHECK(sent.direction == transfer::way::send);
  CHECK(sent.peer == 1);
  CHECK(sent.values == payload.data());
  CHECK(sent.count == values);
  REQUIRE(s.calls.size() == 1);
  CHECK(s.calls.front().header == one_stage::header(4, 0));
  CHECK_FALSE(s.calls.front().payload);
  CHECK(s.calls.front().pending_write == end);
  s.giving.end();
  CHECK(s.failures.empty());
}

TEST_CASE("what is there is given at once, each with the next number", "[edges]") {
  one_stage s;
  for (const int microbatch : {0, 1, 2}) {
    s.give(microbatch, s.room->acquire());
    CHECK(s.giving.inputs().empty());
    s.giving.launch();
    s.giving.end();
    CHECK(s.calls.back().header.call == microbatch);
  }
}

TEST_CASE("a buffer is free when it is to be given, for who writes behind that",
          "[edges]") {
  one_stage s;
  const auto other = s.room->acquire();
  s.give(0, s.room->acquire());
  CHECK_FALSE(s.room->acquire_if_free());
  const auto end = s.giving.launch(); // and the work has not ended
  const auto again = s.room->acquire_if_free();
  REQUIRE(again);
  CHECK(again.take_reader() == end);
  CHECK(again.take_reader() == nullptr);
}

TEST_CASE("what is taken goes to a buffer that nobody reads any more, and on at once",
          "[edges]") {
  one_stage s;
  s.give(0, s.room->acquire());
  const auto reader = s.giving.launch();
  const auto other = s.room->acquire(); // so the other buffer is the one that is read
  const auto giver = std::make_shared<gpu_completion>();
  s.take(7, 0, giver);
  CHECK(s.taking.inputs() == ends{reader});
  CHECK(s.there.empty());
  const auto end = s.taking.launch();
  REQUIRE(s.takes.all.size() == 1);
  const auto& received = s.takes.all.front();
  CHECK(received.direction == transfer::way::receive);
  CHECK(received.peer == 0);
  CHECK(received.count == values);
  REQUIRE(s.there.size() == 1);
  CHECK(s.there.front().header == one_stage::header(7));
  CHECK(s.there.front().payload.data() == received.values);
  CHECK(s.there.front().pending_write == end);
  const wall_clock clock;
  const auto over = end->record_end(clock);
  CHECK(giver->record_end(clock) == over); // one end knows the other's time
  s.taking.end();
  CHECK(s.there.size() == 1);
  s.there.clear(); // and no other handle of the buffer exists
  CHECK(s.room->acquire_if_free());
}

TEST_CASE("where a stage gets what is there, it gets it when it is", "[edges]") {
  one_stage s{false};
  s.take(0, 0);
  s.taking.launch();
  CHECK(s.there.empty());
  s.taking.end();
  REQUIRE(s.there.size() == 1);
  CHECK(s.there.front().payload);
  CHECK(s.there.front().pending_write == nullptr);
}

TEST_CASE("a pass does not count if its input was never taken", "[edges]") {
  const bool at_launch = GENERATE(true, false);
  one_stage s{at_launch};
  s.take(0, 0);
  s.taking.launch();
  CHECK_NOTHROW(s.edges.check());
  s.takes.has_failed = true; // and the receive's kernel ended: the next kernel may run
  if (at_launch)
    CHECK_THROWS_MATCHES(s.edges.check(), std::runtime_error,
                         Message("its GPU is gone"));
  else
    CHECK_NOTHROW(s.edges.check()); // no failure has been reported
}

TEST_CASE("a call in another order is told of, and nothing is taken", "[edges]") {
  one_stage s;
  s.take(0, 0);
  for (const int wrong : {0, 2})
    CHECK_THROWS_MATCHES(s.take(5, wrong), std::logic_error,
                         Message("stage 1 is called to receive tensor "
                                 + std::to_string(wrong)
                                 + " of microbatch 5, but the next tensor is 1"));
  CHECK_NOTHROW(s.take(5, 1));
}

TEST_CASE("a GPU that gives or takes nothing is told of", "[edges]") {
  one_stage s{false};
  s.give(0, s.room->acquire());
  s.giving.end(std::make_exception_ptr(std::runtime_error{"it broke"}));
  s.take(0, 0);
  s.takes.has_failed = true;
  s.taking.launch();
  s.taking.end();
  CHECK(s.failures == std::vector<std::string>{"it broke", "its GPU is gone"});
  CHECK(s.calls.empty());
  CHECK(s.there.empty()); // whatever the buffer holds
}

} // namespace troupe::stage_edges_test
