// SPDX-License-Identifier: BSD-3-Clause
// A GPU's attention, by kernels and by a library, compared with the CPU's in double.

#include "kernels/attention.hpp"

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/library_checks.hpp"
#include "kernels/cuda/stream.hpp"
#include "tests/kernels/cuda/judge.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

namespace troupe::attention_test {

using gpu::stored_array;

namespace {

/// The inputs of an attention, and the results.
struct attention_case {
  attention_shape dims;
  std::vector<float> qkv, dy;

  attention_case(const attention_shape& of, precision stored)
    : dims(of),
      qkv(gpu::rounded(random_values<float>(tokens() * 3 * of.width, 1), stored)),
      dy(gpu::rounded(random_values<float>(tokens() * of.width, 2), stored)) {
    // nop
  }

  std::int64_t tokens() const { return dims.sequences * dims.length; }

  /// Whether a value of a matrix with one row per token is of a token before `end`.
  bool is_before(std::size_t value, std::size_t columns, std::int64_t end) const {
    const auto row = static_cast<std::int64_t>(value / columns);
    return (dims.by_position ? row / dims.sequences : row % dims.length) < end;
  }
};

enum : std::size_t { y, log_sum, dqkv }; // of results

std::vector<std::vector<double>> made_by_cpu(const attention_case& of) {
  const auto& dims = of.dims;
  const auto C = dims.width, R = of.tokens();
  const auto qkv = gpu::exact(of.qkv), dy = gpu::exact(of.dy);
  std::vector<double> out(dy.size()), gradient(qkv.size()),
    sums(static_cast<std::size_t>(dims.heads * R)),
    space(static_cast<std::size_t>(attention<double>::scratch(dims, 1)));
  stream on;
  const auto in = dense(qkv.data(), R, 3 * C);
  attention<double>::forward(dims, in, dense(out.data(), R, C), sums.data(),
                             space.data(), on);
  attention<double>::backward(dims, in, dense(out.data(), R, C), sums.data(),
                              dense(dy.data(), R, C), dense(gradient.data(), R, 3 * C),
                              space.data(), on);
  return {out, sums, gradient};
}

void check_against_cpu(const attention_case& of, const gpu::results& made,
                       precision stored) {
  const auto right = made_by_cpu(of);
  CHECK(relative_difference(made[y], right[y]) < gpu::near(stored));
  CHECK(relative_difference(made[log_sum], right[log_sum]) < gpu::near_fp32);
  const auto columns = static_cast<std::size_t>(of.dims.width);
  for (std::size_t part = 0; part < 3; ++part) {
    std::vector<float> own;
    std::vector<double> its;
    for (std::size_t i = 0; i < of.qkv.size(); ++i)
      if (i / columns % 3 == part) {
        own.push_back(made[dqkv][i]);
        its.push_back(right[dqkv][i]);
      }
    CAPTURE(part);
    CHECK(relative_difference(own, its) < gpu::near(stored));
  }
}

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

namespace {

std::shared_ptr<cuda::stream> stream_with_library() {
  auto result = std::make_shared<cuda::stream>(0);
  if (const auto why = cuda::use_attention_library(*result); !why.empty())
    SKIP(why);
  return result;
}

gpu::results made_by_library(const attention_case& of, std::int64_t gap) {
  const auto& dims = of.dims;
  const auto C = dims.width, R = of.tokens();
  constexpr auto bf16s = precision::bf16;
  return gpu::in_every_order([&] {
    const auto on = stream_with_library();
    const stored_array qkv{"qkv", of.qkv, {R, 3 * C, gap}, bf16s},
      dy{"dy", of.dy, {R, C, gap}, bf16s}, out{"y", {R, C, gap}, bf16s},
      gradient{"dqkv", {R, 3 * C, gap}, bf16s};
    const gpu::array<float> sums{"log_sum", dims.heads * R};
    REQUIRE(on->attention_forward(dims, qkv.in(), out.out(), sums.data()));
    REQUIRE(on->attention_backward(dims, qkv.in(), out.in(), sums.data(), dy.in(),
                                   gradient.out()));
    on->wait();
    return gpu::results{out.values(), sums.values(), gradient.values()};
  });
}

} // namespace

TEST_CASE("the attention of a GPU's library is the CPU's", "[cuda]") {
  GPU_OR_SKIP();
  const auto [B, T, H, size, gap, by_position] = GENERATE(
    table<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>(
      {{1, 17, 1, 8, 0, false},
       {3, 31, 2, 8, 8, false},
       {2, 65, 2, 24, 0, true},
       {1, 130, 1, 64, 16, true},
       {2, 72, 2, 64, 0, false},
       {1, 140, 1, 128, 0, false}}));
  CAPTURE(B, T, H, size, gap, by_position);
  const attention_case of{{B, T, H, H * size, by_position}, precision::bf16};
  check_against_cpu(of, made_by_library(of, gap), precision::bf16);
}

TEST_CASE("a library's attention that is recorded repeats with its arguments",
          "[cuda]") {
  GPU_OR_SKIP();
  const auto on = stream_with_library();
  const attention_shape dims{1, 20, 2, 16};
  const attention_case of{dims, precision::bf16};
  const auto C = dims.width, R = of.tokens();
  const stored_array qkv{"qkv", of.qkv, {R, 3 * C}, precision::bf16},
    dy{"dy", of.dy, {R, C}, precision::bf16};
  for (int i = 0; i < 4; ++i) {
    const stored_array out{"y", {R, C}, precision::bf16},
      gradient{"dqkv", {R, 3 * C}, precision::bf16};
    const gpu::array<float> sums{"log_sum", dims.heads * R};
    for (int repetition = 0; repetition < 3; ++repetition) {
      on->capture_launches();
      on->attention_forward(dims, qkv.in(), out.out(), sums.data());
      on->attention_backward(dims, qkv.in(), out.in(), sums.data(), dy.in(),
                             gradient.out());
      on->launch_captured();
      on->stop_capture();
      on->wait();
    }
    check_against_cpu(of, {out.values(), sums.values(), gradient.values()},
                      precision::bf16);
  }
}

TEST_CASE("a library's attention is of bf16 in packs of 16 bytes", "[cuda]") {
  GPU_OR_SKIP();
  const auto on = stream_with_library();
  const auto takes = [&](const attention_shape& dims, precision stored,
                         std::int64_t gap) {
    const auto R = dims.sequences * dims.length;
    const std::vector<float> zeros(static_cast<std::size_t>(3 * R * dims.width));
    const stored_array qkv{"qkv", zeros, {R, 3 * dims.width, gap}, stored},
      out{"y", {R, dims.width, gap}, stored};
    const gpu::array<float> sums{"log_sum", R * dims.heads};
    const bool result = on->attention_forward(dims, qkv.in(), out.out(), sums.data());
    on->wait();
    return result;
  };
  CHECK(takes({1, 4, 1, 8}, precision::bf16, 0));
  CHECK_FALSE(takes({1, 4, 1, 8}, precision::fp32, 0));
  CHECK_FALSE(takes({1, 4, 1, 8}, precision::bf16, 4));
  CHECK_FALSE(takes({1, 4, 2, 8}, precision::bf16, 0));
  CHECK_FALSE(takes({1, 4, 1, 136}, precision::bf16, 0));
  CHECK_FALSE(takes({1, 1, 1, 8}, precision::bf16, 0));
}

TEST_CASE("TROUPE_CUDNN=off leaves attention to kernels", "[cuda]") {
  GPU_OR_SKIP();
  cuda::stream on{0};
  setenv("TROUPE_CUDNN", "off", 1);
  CHECK(cuda::use_attention_library(on) == "TROUPE_CUDNN says off");
  unsetenv("TROUPE_CUDNN");
  CHECK(on.attention_version() == 0);
  CHECK_FALSE(on.attention_forward({1, 4, 1, 8}, {}, {}, nullptr));
}

} // namespace troupe::attention_test
