// SPDX-License-Identifier: BSD-3-Clause
// The messages that a stage sends and awaits while GPUs still run launched works.

#include "tests/actors/staged.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::stage_launches_test {

using tiny::staged;
using lines = std::vector<std::string>;

namespace {

/// Work that leaves at launch, as on a GPU.
class launched_work : public simulated_stage {
public:
  using simulated_stage::simulated_stage;

  bool leaves_at_launch(op what) const override { return what != op::weight_gradient; }
};

run_plan three_stages() {
  return tiny::simulation(one_f_one_b(), {3, 2, 3});
}

/// Work whose messages have buffers that GPUs still send from.
class reading_work : public simulated_stage {
public:
  using simulated_stage::simulated_stage;

  std::shared_ptr<gpu_completion> reader_before(op what, int microbatch) override {
    return what == op::forward && microbatch == 1 ? reader : nullptr;
  }

  static inline const auto reader = std::make_shared<gpu_completion>();
};

constexpr position middle{0, 0, 1};
constexpr op f = op::forward, b = op::backward;

} // namespace

TEST_CASE("what a GPU makes leaves when it has been launched, and once", "[stage]") {
  staged<launched_work> s{three_stages(), middle};
  s.give(0);
  s.core.run(s.of(f, 0));
  CHECK(s.port.works.front().first.launched);
  s.port.news();
  const auto end = std::make_shared<gpu_completion>();
  s.core.launched({s.of(f, 0), end});
  CHECK(s.port.news() == lines{"sends on 0 ahead"});
  s.give_gradient(0); // the stage above was notified first
  CHECK(s.port.news() == lines{"arrived B0"});
  s.core.run(s.of(b, 0));
  CHECK(s.port.news() == lines{"computes B0"});
  s.core.launched({s.of(b, 0), end});
  CHECK(s.port.news() == lines{"sends back 0 ahead"});
  s.port.run_work(s.core);
  CHECK(s.port.news() == lines{"done F0"});
  s.port.run_work(s.core);
  CHECK(s.port.news() == lines{"done B0"});
}

TEST_CASE("a pass waits for what its input is made by, and another for its own",
          "[stage]") {
  staged<> s{three_stages(), middle};
  const auto up = std::make_shared<gpu_completion>(),
             down = std::make_shared<gpu_completion>();
  s.give(0);
  s.core.receive(activation{s.header(1), {}, up});
  s.core.receive(gradient{s.header(0), {}, down});
  const auto inputs_of = [&](op what, int microbatch) {
    s.core.run(s.of(what, microbatch));
    const auto result = s.port.works.front().first.inputs;
    s.port.run_work(s.core);
    return result;
  };
  CHECK(inputs_of(f, 0).empty());
  CHECK(inputs_of(f, 1) == std::vector{up});
  CHECK(inputs_of(op::input_gradient, 0) == std::vector{down});
  CHECK(inputs_of(op::weight_gradient, 0).empty());
}

TEST_CASE("a pass waits for who still reads where it writes", "[stage]") {
  staged<reading_work> s{three_stages(), middle};
  for (const int microbatch : {0, 1}) {
    s.give(microbatch);
    s.core.run(s.of(f, microbatch));
    const auto& inputs = s.port.works.front().first.inputs;
    if (microbatch == 0)
      CHECK(inputs.empty());
    else
      CHECK(inputs == std::vector{reading_work::reader});
    s.port.run_work(s.core);
  }
}

} // namespace troupe::stage_launches_test
