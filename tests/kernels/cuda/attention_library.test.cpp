// SPDX-License-Identifier: BSD-3-Clause
// Attention by a GPU's library, as layers request attention, compared with the CPU's in
// double.

#include "kernels/cuda/library_checks.hpp"
#include "kernels/cuda/stream.hpp"
#include "tests/kernels/cuda/attention_case.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdlib>
#include <memory>

namespace troupe::attention_test {

using gpu::stored_array;

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
