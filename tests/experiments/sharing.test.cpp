// SPDX-License-Identifier: BSD-3-Clause
// Compares ZeRO's formulas with the bytes that runs hold and send.

#include "experiments/report/zero_table.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>

namespace troupe::sharing_test {

namespace {

double relative(double measured, double book) {
  return book == 0 ? std::abs(measured) : std::abs(measured / book - 1);
}

run_plan plan_of(const model_options& model, shape dims, int data, int tensor,
                 const std::string& exchange, const std::string& name = "1f1b") {
  auto plan = tiny::training_of(*find_schedule(name), dims, clock_kind::virtual_time,
                                model, std::int64_t{data} * dims.microbatches);
  plan.mesh[axis::data] = data;
  plan.mesh[axis::tensor] = tensor;
  plan.exchange = find_exchange(exchange);
  if (tensor > 1)
    plan.work->shards = *make_shards<float>(model, tensor);
  plan.keep.record = plan.keep.weights = plan.keep.gradients = false;
  return plan;
}

double moved(const run_result& result, traffic kind) {
  return static_cast<double>(result.bytes_moved[static_cast<std::size_t>(kind)]);
}

} // namespace

TEST_CASE("a rank holds what ZeRO's table says", "[zero]") {
  const auto* const exchange = GENERATE("ring", "zero1", "zero2", "zero3");
  const int tensor = GENERATE(1, 2);
#ifdef TROUPE_SANITIZED
  const model_options large{"gpt", 4, 152, 4, 2, 64};
#else
  const model_options large{"gpt", 4, 456, 4, 2, 64};
  REQUIRE(make_network<float>(large)->values() > 10'000'000);
#endif
  const auto plan = plan_of(large, {1, 1, 1}, 4, tensor, exchange);
  const auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const auto& has = result.peak_parts[static_cast<std::size_t>(rank)];
    const auto book = zero_bytes_of(plan, rank).value();
    INFO(exchange << ", rank " << rank);
    CHECK(relative(static_cast<double>(has[0]), book.parameters) < 0.02);
    CHECK(relative(static_cast<double>(has[1]), book.gradients) < 0.02);
    CHECK(relative(static_cast<double>(has[2]), book.optimizer) < 0.02);
  }
}

TEST_CASE("data replicas send what ZeRO's analysis says", "[zero]") {
  const auto* const exchange = GENERATE("ring", "halving", "zero1", "zero2", "zero3");
  const auto* const name = GENERATE("gpipe", "chimera", "pipedream");
  const int data = GENERATE(2, 4);
  model_options model{"gpt", 4, 64, 4, 2, 64};
  model.tied = std::string{name} != "pipedream"; // two tied ends send more messages
  const auto plan = plan_of(model, {2, 4, 2}, data, 1, exchange, name);
  const auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  const auto book = zero_traffic_of(plan);
  INFO(exchange << " of " << data << " under " << name);
  CHECK(relative(moved(result, traffic::gradients), book.gradients) < 0.02);
  CHECK(relative(moved(result, traffic::parameters), book.parameters) < 0.02);
}

TEST_CASE("ZeRO 3 sends half as much again as an all_reduce of one microbatch",
          "[zero]") {
  const auto sent = [](const std::string& exchange) {
    const auto r =
      perform(plan_of({"gpt", 4, 64, 4, 2, 64}, {1, 1, 1}, 4, 1, exchange));
    return moved(r, traffic::gradients) + moved(r, traffic::parameters);
  };
  const double all_reduce = sent("ring");
  CHECK(sent("zero1") == all_reduce);
  CHECK(sent("zero2") == all_reduce);
  CHECK(sent("zero3") == 1.5 * all_reduce);
}

TEST_CASE("the ZeRO table in mixed precision", "[zero]") {
  // Figure 1 of the paper: 7.5 billion parameters, 64 replicas.
  const auto gigabytes = [](shared_out shares) {
    return zero_in_mixed_precision(7.5e9, 64, shares).sum() / 1e9;
  };
  CHECK(gigabytes(shared_out::nothing) == 120);
  CHECK(std::abs(gigabytes(shared_out::optimizer_state) - 31.4) < 0.05);
  CHECK(std::abs(gigabytes(shared_out::gradients) - 16.6) < 0.05);
  CHECK(std::abs(gigabytes(shared_out::parameters) - 1.9) < 0.05);
}

} // namespace troupe::sharing_test
