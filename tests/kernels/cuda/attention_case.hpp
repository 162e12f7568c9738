// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/attention.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

// An attention with random inputs, and the comparison of a GPU's results with the CPU's
// in double.

namespace troupe::attention_test {

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

inline std::vector<std::vector<double>> made_by_cpu(const attention_case& of) {
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

inline void check_against_cpu(const attention_case& of, const gpu::results& made,
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

} // namespace troupe::attention_test
