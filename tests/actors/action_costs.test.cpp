// SPDX-License-Identifier: BSD-3-Clause
// The costs of a stage's actions, against the operations of single layers and shares by
// hand.

#include "actors/pipeline/action_costs.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

namespace troupe::action_costs_test {

using Catch::Approx;

namespace {

constexpr op f = op::forward, b = op::backward;

run_plan two_stages(clock_kind clock = clock_kind::virtual_time) {
  return tiny::training_of(one_f_one_b(), {2, 3, 1}, clock, {"mlp", 5, 12});
}

/// Operations of a forward of one microbatch, layer by layer.
double forward(const run_plan& plan, int stage, int microbatch) {
  const auto& first = plan.work->first_layers;
  const auto s = static_cast<std::size_t>(stage);
  double result = 0;
  for (int i = first[s]; i < first[s + 1]; ++i)
    result += plan.work->whole.layers[static_cast<std::size_t>(i)]->operations();
  return result * static_cast<double>(plan.samples_of(0, microbatch));
}

double operations(const run_plan& plan, const action& a, double stage_share = 1) {
  return action_costs{plan, {0, 0, a.stage}, stage_share}.cost_of(a, {}).operations;
}

} // namespace

TEST_CASE("a pass costs the operations of its layers, and a backward twice as many",
          "[action_costs]") {
  const auto plan = two_stages();
  for (const int stage : {0, 1}) {
    const auto once = forward(plan, stage, 1);
    CHECK(once > 0);
    CHECK(operations(plan, {f, 0, stage, 1}) == Approx(once));
    CHECK(operations(plan, {b, 0, stage, 1}) == Approx(2 * once));
    CHECK(operations(plan, {op::input_gradient, 0, stage, 1}) == Approx(once));
    CHECK(operations(plan, {f, 0, stage, 1}, 0.25) == Approx(4 * once)); // experts
  }
}

TEST_CASE("the first action of a pair pays for both, with operations in virtual time",
          "[action_costs]") {
  for (const auto clock : {clock_kind::virtual_time, clock_kind::real}) {
    const auto plan = two_stages(clock);
    action_costs costs{plan, {0, 0, 0}, 1};
    const auto pair = costs.cost_of({f, 0, 0, 1}, action{b, 0, 1, 0});
    const auto second = clock == clock_kind::real ? 0 : operations(plan, {b, 0, 1, 0});
    CHECK(pair.operations == Approx(forward(plan, 0, 1) + second));
    REQUIRE(pair.also.size() == 1);
    CHECK(pair.also[0].kind == static_cast<int>(b));
    CHECK(pair.also[0].stage == 1);
  }
}

// Three of four layers are a segment, and the fourth is recomputed by itself.
TEST_CASE("a backward pays for the segments that it recomputes", "[action_costs]") {
  auto plan = tiny::simulation(one_f_one_b(), {2, 4});
  plan.sch.recomputes = recomputation::late;
  plan.work.simulated().buckets = 4;
  plan.recomputed_units = 3;
  action_costs costs{plan, {0, 0, 1}, 1};
  CHECK(costs.cost_of({op::recompute, 0, 1, 0}, {}).size == 0.25);
  const auto backward = costs.cost_of({b, 0, 1, 0}, {});
  CHECK(backward.size == 1);
  REQUIRE(backward.also.size() == 1);
  CHECK(backward.also[0].kind == static_cast<int>(op::recompute));
  CHECK(backward.also[0].size == 0.75);
  CHECK(costs.cost_of({op::weight_gradient, 0, 1, 0}, {}).also.empty());
  CHECK(costs.cost_of({f, 0, 1, 0}, {}).also.empty());
}

TEST_CASE("a message has the values that the next stage's first layer reads",
          "[action_costs]") {
  const auto plan = two_stages();
  const auto first = static_cast<std::size_t>(plan.work->first_layers[1]);
  CHECK(action_costs{plan, {0, 0, 0}, 1}.values_below(1, 0)
        == plan.work->whole.layers[first]->input_size(1));
  const auto simulated = tiny::simulation(one_f_one_b(), {2, 4});
  CHECK(action_costs{simulated, {0, 0, 0}, 1}.values_below(1, 0) == 0);
}

} // namespace troupe::action_costs_test
