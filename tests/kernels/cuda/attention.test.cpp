// SPDX-License-Identifier: BSD-3-Clause
// A GPU's attention, compared with the CPU's in double.

#include "kernels/attention.hpp"

#include "kernels/cuda/kernels.hpp"
#include "tests/kernels/cuda/attention_case.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace troupe::attention_test {

using gpu::stored_array;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

gpu::results made_by_gpu(const attention_case& of, precision stored, precision upper,
                         std::int64_t gap) {
  const auto& dims = of.dims;
  const auto C = dims.width, R = of.tokens();
  return gpu::in_every_order([&] {
    const stored_array qkv{"qkv", of.qkv, {R, 3 * C, gap}, stored},
      dy{"dy", of.dy, {R, C, gap}, upper}, out{"y", {R, C, gap}, stored},
      gradient{"dqkv", {R, 3 * C, gap}, stored};
    const gpu::array<float> sums{"log_sum", dims.heads * R},
      space{"space", dims.heads * R};
    cuda::attention::forward(dims, qkv.in(), out.out(), sums.data(), nullptr);
    cuda::attention::backward(dims, qkv.in(), out.in(), sums.data(), dy.in(),
                              gradient.out(), space.data(), nullptr);
    gpu::wait();
    return gpu::results{out.values(), sums.values(), gradient.values()};
  });
}

void check_kernels(const attention_shape& dims, precision stored, precision upper,
                   std::int64_t gap) {
  const attention_case of{dims, stored};
  check_against_cpu(of, made_by_gpu(of, stored, upper, gap), stored);
}

} // namespace

TEST_CASE("a GPU's attention is the CPU's", "[cuda]") {
  GPU_OR_SKIP();
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const auto [B, T, H, size, gap, by_position] = GENERATE(
    table<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>(
      {{1, 1, 1, 1, 0, false},
       {2, 5, 3, 5, 1, true},
       {3, 31, 2, 8, 1, false},
       {1, 9, 2, 12, 0, false},
       {1, 64, 1, 16, 8, true},
       {2, 65, 2, 24, 0, true},
       {1, 130, 1, 64, 0, false},
       {1, 130, 1, 5, 3, false},
       {1, 70, 1, 72, 0, false},
       {1, 66, 1, 136, 8, true}}));
  if (!tests::tries(5, {std::to_string(T), std::to_string(size),
                        stored == precision::bf16 ? "bf16" : "fp32"}))
    return;
  CAPTURE(B, T, H, size, gap, by_position, stored == precision::bf16);
  check_kernels({B, T, H, H * size, by_position}, stored, stored, gap);
}

TEST_CASE("a GPU's attention of bf16 takes gradients in fp32", "[cuda]") {
  GPU_OR_SKIP();
  check_kernels({1, 20, 2, 16}, precision::bf16, precision::fp32, 0);
}

TEST_CASE("a GPU gives a score of -infinity no weight", "[cuda]") {
  GPU_OR_SKIP();
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  attention_case of{{1, 67, 1, 1}, stored};
  constexpr std::size_t hidden = 65; // more keys than a block reads together
  for (std::size_t t = 0; t < of.dy.size(); ++t) {
    of.qkv[3 * t] = 1;
    if (t < hidden)
      of.qkv[3 * t + 1] = -std::numeric_limits<float>::infinity();
  }
  const auto made = made_by_gpu(of, stored, stored, 0);
  const auto right = made_by_cpu(of);
  for (std::size_t t = hidden; t < of.dy.size(); ++t) {
    CHECK(std::abs(made[y][t] - right[y][t]) < 1e-2);
    CHECK(std::abs(made[log_sum][t] - right[log_sum][t]) < 1e-5);
  }
}

TEST_CASE("a GPU's token reads nothing of later tokens", "[cuda]") {
  GPU_OR_SKIP();
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  // The hidden token may be either of two neighbours in a register.
  const auto [T, end, by_position] = GENERATE(table<std::int64_t, std::int64_t, bool>(
    {{70, 3, false}, {70, 69, true}, {9, 8, false}}));
  const attention_shape dims{2, T, 2, 16, by_position};
  CAPTURE(stored == precision::bf16, by_position, T, end);
  const attention_case whole{dims, stored};
  const auto right = made_by_cpu(whole);
  const auto columns = static_cast<std::size_t>(dims.width);
  auto cut = whole;
  for (std::size_t i = 0; i < cut.qkv.size(); ++i)
    if (i / columns % 3 > 0 && !cut.is_before(i, 3 * columns, end))
      cut.qkv[i] = not_a_number;
  const auto made = made_by_gpu(cut, stored, stored, 0);
  // Outputs of the earlier tokens read no later token; outputs of the later tokens read
  // NaNs.
  std::vector<float> outputs, gradients;
  std::vector<double> right_outputs, right_gradients;
  for (std::size_t i = 0; i < made[y].size(); ++i)
    if (cut.is_before(i, columns, end)) {
      outputs.push_back(made[y][i]);
      right_outputs.push_back(right[y][i]);
    } else {
      REQUIRE(std::isnan(made[y][i]));
    }
  for (std::size_t i = 0; i < made[dqkv].size(); ++i)
    if (cut.is_before(i, 3 * columns, end) && i / columns % 3 == 0) {
      gradients.push_back(made[dqkv][i]);
      right_gradients.push_back(right[dqkv][i]);
    }
  CHECK(relative_difference(outputs, right_outputs) < gpu::near(stored));
  CHECK(relative_difference(gradients, right_gradients) < gpu::near(stored));
}

TEST_CASE("a GPU's token reads nothing of other heads and sequences", "[cuda]") {
  GPU_OR_SKIP();
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const std::int64_t size = GENERATE(4, 8);
  CAPTURE(stored == precision::bf16, size);
  const attention_case whole{{2, 20, 2, 2 * size}, stored};
  const auto right = made_by_cpu(whole);
  const auto columns = static_cast<std::size_t>(2 * size);
  // Head 0 of sequence 0.
  const auto is_other = [&](std::size_t i, std::size_t row_columns) {
    return i / row_columns >= 20 || i % columns >= columns / 2;
  };
  auto cut = whole;
  for (std::size_t i = 0; i < cut.qkv.size(); ++i)
    cut.qkv[i] = is_other(i, 3 * columns) ? cut.qkv[i] : not_a_number;
  for (std::size_t i = 0; i < cut.dy.size(); ++i)
    cut.dy[i] = is_other(i, columns) ? cut.dy[i] : not_a_number;
  const auto made = made_by_gpu(cut, stored, stored, 0);
  const auto compare = [&](std::size_t which, std::size_t row_columns) {
    std::vector<float> own;
    std::vector<double> its;
    for (std::size_t i = 0; i < made[which].size(); ++i)
      if (is_other(i, row_columns)) {
        own.push_back(made[which][i]);
        its.push_back(right[which][i]);
      }
    CHECK(relative_difference(own, its) < gpu::near(stored));
  };
  compare(y, columns);
  compare(dqkv, 3 * columns);
}

TEST_CASE("a GPU's attention refuses heads that are too wide", "[cuda]") {
  CHECK_THROWS_AS(cuda::attention::forward({1, 1, 1, 257}, {}, {}, nullptr, nullptr),
                  std::runtime_error);
}

TEST_CASE("a GPU's token gets no gradient of earlier tokens", "[cuda]") {
  GPU_OR_SKIP();
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const std::int64_t begin = GENERATE(3, 66);
  const attention_shape dims{2, 70, 2, 16};
  CAPTURE(stored == precision::bf16, begin);
  const attention_case whole{dims, stored};
  const auto right = made_by_cpu(whole);
  const auto columns = static_cast<std::size_t>(dims.width);
  auto cut = whole;
  for (std::size_t i = 0; i < cut.dy.size(); ++i)
    if (cut.is_before(i, columns, begin))
      cut.dy[i] = not_a_number;
  for (std::size_t i = 0; i < cut.qkv.size(); ++i)
    if (i / columns % 3 == 0 && cut.is_before(i, 3 * columns, begin))
      cut.qkv[i] = not_a_number;
  const auto made = made_by_gpu(cut, stored, stored, 0);
  std::vector<float> gradients;
  std::vector<double> right_gradients;
  for (std::size_t i = 0; i < made[dqkv].size(); ++i)
    if (!cut.is_before(i, 3 * columns, begin)) {
      gradients.push_back(made[dqkv][i]);
      right_gradients.push_back(right[dqkv][i]);
    } else {
      REQUIRE(std::isnan(made[dqkv][i]));
    }
  CHECK(relative_difference(gradients, right_gradients) < gpu::near(stored));
}

} // namespace troupe::attention_test
