// SPDX-License-Identifier: BSD-3-Clause
// The pieces of a stage in a simulation, which computes nothing.

#include "actors/pipeline/simulated_stage.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <sstream>

namespace troupe::simulated_stage_test {

using Catch::Approx;
using kind = shard_collective<float>::kind;

namespace {

/// The pieces of a pass in words, one line each: "layer 1, a half, sum of 8".
std::string pieces(const run_plan& plan, op what, bool by_layer = false) {
  simulated_stage stage{plan, {0, 0, 1}};
  std::ostringstream out;
  double shares = 0;
  for (const auto& p : stage.pieces({{what, 0, 1, 0}, {}, 0, true, true, by_layer})) {
    out << "layer " << p.layer << ", " << p.share;
    const char* names[] = {"", "sum", "gather", "scatter", "experts"};
    if (p.collective.operation != kind::none)
      out << ", " << names[static_cast<int>(p.collective.operation)] << " of "
          << p.collective.values;
    for (const int layer : p.completes)
      out << ", completes " << layer;
    out << "\n";
    shares += p.share;
    CHECK_FALSE(p.run);
    CHECK(p.collective.array == nullptr);
  }
  CHECK(shares == Approx(1));
  return out.str();
}

run_plan plan_of(int tensor, int buckets = 2) {
  auto plan = tiny::simulation(one_f_one_b(), {2, 4});
  plan.mesh[axis::tensor] = tensor;
  plan.work.simulated().buckets = buckets;
  plan.work.simulated().sum = 32;
  return plan;
}

} // namespace

TEST_CASE("a stage without others is one piece, or one a layer if they are waited for",
          "[simulated_stage]") {
  const auto plan = plan_of(1);
  // layers do not matter to any actor
  CHECK(pieces(plan, op::forward) == "layer 0, 1\n");
  CHECK(pieces(plan, op::forward, true)
        == "layer 0, 0.5, completes 0\n"
           "layer 1, 0.5, completes 1\n");
  CHECK(pieces(plan, op::backward, true)
        == "layer 1, 0.5, completes 1\n"
           "layer 0, 0.5, completes 0\n");
}

TEST_CASE("tensor shards sum between pieces, and behind the last one",
          "[simulated_stage]") {
  const auto plan = plan_of(2);
  CHECK(pieces(plan, op::forward)
        == "layer 0, 0.5, sum of 8\n"
           "layer 0, 0.5, sum of 8\n"
           "layer 0, 0\n");
  CHECK(pieces(plan, op::weight_gradient) == "layer 0, 1\n");
}

TEST_CASE("by sequence shards gather before a piece, and scatter behind it",
          "[simulated_stage]") {
  auto plan = plan_of(2, 1);
  plan.sequence_parallel = true;
  plan.work.simulated().sums = 1;
  CHECK(pieces(plan, op::forward)
        == "layer 0, 0, gather of 8\n"
           "layer 0, 1, scatter of 8\n"
           "layer 0, 0\n");
  CHECK(pieces(plan, op::backward)
        == "layer 0, 0, gather of 16\n"
           "layer 0, 1, scatter of 8\n"
           "layer 0, 0\n");
}

TEST_CASE("shards gather half the bytes in bf16, and sum the same",
          "[simulated_stage]") {
  auto plan = plan_of(2, 1);
  plan.work.simulated().sums = 1;
  plan.work.simulated().stored = precision::bf16;
  CHECK(pieces(plan, op::forward)
        == "layer 0, 1, sum of 8\n"
           "layer 0, 0\n");
  plan.sequence_parallel = true;
  CHECK(pieces(plan, op::forward)
        == "layer 0, 0, gather of 4\n"
           "layer 0, 1, scatter of 8\n"
           "layer 0, 0\n");
  CHECK(pieces(plan, op::backward)
        == "layer 0, 0, gather of 8\n"
           "layer 0, 1, scatter of 8\n"
           "layer 0, 0\n");
}

TEST_CASE("experts are asked behind the first piece", "[simulated_stage]") {
  auto plan = plan_of(1, 1);
  plan.mesh[axis::data] = plan.mesh[axis::expert] = 2;
  plan.exchange = find_exchange("ring");
  plan.work.simulated().experts = 24;
  CHECK(pieces(plan, op::backward)
        == "layer 0, 0.5, experts of 6\n"
           "layer 0, 0.5\n");
  CHECK(pieces(plan, op::weight_gradient)
        == "layer 0, 0.5, experts of 6\n"
           "layer 0, 0.5\n");
}

TEST_CASE("a backward runs the segments up again that were not recomputed",
          "[simulated_stage]") {
  auto plan = plan_of(1, 4);
  plan.sch.recomputes = recomputation::late;
  CHECK(pieces(plan, op::recompute) == "layer 0, 1\n"); // all at once
  plan.recomputed_units = 3;                            // layers 0 to 2, and 3
  CHECK(pieces(plan, op::recompute) == "layer 3, 1\n");
  CHECK(pieces(plan, op::weight_gradient)
        == "layer 3, 0.25\nlayer 2, 0.25\nlayer 1, 0.25\nlayer 0, 0.25\n");
  // A backward is two forwards, and half of one again.
  plan.recomputed_units = 2;
  CHECK(pieces(plan, op::backward)
        == "layer 3, 0.2\nlayer 2, 0.2\n"
           "layer 0, 0.1\nlayer 1, 0.1\n"
           "layer 1, 0.2\nlayer 0, 0.2\n");
}

TEST_CASE("a message has a value for each shard, however small it is",
          "[simulated_stage]") {
  auto plan = plan_of(4, 1);
  plan.work.simulated().sum = 0;
  plan.work.simulated().sums = 1;
  CHECK(pieces(plan, op::forward)
        == "layer 0, 1, sum of 4\n"
           "layer 0, 0\n");
}

TEST_CASE("a simulated stage has empty buffers, a gradient a bucket",
          "[simulated_stage]") {
  const auto plan = plan_of(1, 3);
  simulated_stage stage{plan, {0, 0, 0}};
  const auto gradients = stage.gradients();
  CHECK(gradients.buckets.size() == 3);
  CHECK_FALSE(gradients.buckets[0]);
  CHECK(stage.has_inputs(0));
  CHECK_FALSE(stage.end_forward(0));
  CHECK(gradients.buckets_of({2, 0}) == std::vector{2, 0});
}

} // namespace troupe::simulated_stage_test
