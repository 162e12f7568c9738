// SPDX-License-Identifier: BSD-3-Clause
// A GPU's loss compared with the CPU's in double.

#include "kernels/cross_entropy.hpp"
#include "kernels/cuda/kernels.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

namespace troupe::loss_test {

using gpu::stored_array;

namespace {

constexpr float scale = 0.125F;
constexpr float infinity = std::numeric_limits<float>::infinity();

struct batch {
  std::int64_t rows, classes;
  precision stored; // of the gradient
  std::vector<float> logits;
  std::vector<std::int32_t> labels;

  float* row(std::int64_t r) { return &logits[static_cast<std::size_t>(r * classes)]; }
  std::int32_t& label(std::int64_t r) { return labels[static_cast<std::size_t>(r)]; }
};

/// Every second row's label has the largest logit. Every fourth row's label is one of
/// two such, of which the first is right.
batch some_batch(std::int64_t rows, std::int64_t classes,
                 precision stored = precision::fp32) {
  batch result{rows, classes, stored, random_values<float>(rows * classes, 1),
               random_labels(rows, static_cast<int>(classes), 2)};
  for (std::int64_t r = 0; r < rows; r += 2) {
    auto* const row = result.row(r);
    auto* const most = std::max_element(row, row + classes);
    if (r % 4 == 0)
      row[result.label(r)] = *most;
    else
      result.label(r) = static_cast<std::int32_t>(most - row);
  }
  return result;
}

struct judgement {
  std::vector<double> gradient, row_losses;
  std::vector<float> correct;
  loss_sum sum;
};

judgement of_cpu(const batch& from) {
  judgement result{gpu::exact(from.logits),
                   std::vector<double>(static_cast<std::size_t>(from.rows)),
                   {},
                   {}};
  stream on;
  const auto rows = dense(result.gradient.data(), from.rows, from.classes);
  cross_entropy<double>::forward(rows, from.labels.data(), scale, rows,
                                 result.row_losses.data(), result.sum, on);
  std::int64_t hits = 0;
  for (std::size_t r = 0; r < from.labels.size(); ++r) {
    const auto* const row = &from.logits[r * static_cast<std::size_t>(from.classes)];
    const bool hit = std::max_element(row, row + from.classes) - row == from.labels[r];
    result.correct.push_back(hit ? 1 : 0);
    hits += hit ? 1 : 0;
  }
  CHECK(hits == result.sum.correct);
  return result;
}

/// Logits of some classes in fp32, with a gap of NaNs behind each row, and the gradient
/// in the same memory. Threads write halves of a float, so accesses are watched by
/// halves.
class gpu_logits {
public:
  gpu_logits(const std::vector<float>& logits, const stored_array::size& dims,
             precision stored)
    : dims_(dims),
      stored_(stored),
      memory_(std::make_unique<gpu::array<std::uint16_t>>(
        "logits", halves_of(logits, dims), gpu::use::updated)) {
    // nop
  }

  matrix<float> logits() const {
    return {reinterpret_cast<float*>(memory_->data()), dims_.rows, dims_.columns,
            dims_.columns + dims_.gap};
  }

  stored_matrix<float> gradient() const {
    return gradient_of_logits(logits(), stored_);
  }

  /// The memory as fp32, without gaps. \throws std::logic_error if a value was written
  /// to a gap
  std::vector<float> values() const {
    const auto halves = memory_->values();
    std::vector<float> all(halves.size() / 2), result;
    std::memcpy(all.data(), halves.data(), halves.size() * sizeof halves[0]);
    const auto stride = dims_.columns + dims_.gap;
    for (std::int64_t r = 0; r < dims_.rows; ++r)
      for (std::int64_t v = 0; v < stride; ++v) {
        const auto value = all[static_cast<std::size_t>(r * stride + v)];
        if (v < dims_.columns)
          result.push_back(value);
        else if (value == value)
          throw std::logic_error{"a gap behind a row of logits was written"};
      }
    return result;
  }

  /// The values of the gradient. Rows of bf16 take the first half of rows of fp32.
  std::vector<float> gradient_values() const {
    const auto all = values();
    if (stored_ == precision::fp32)
      return all;
    std::vector<float> result;
    std::vector<bf16> halves(static_cast<std::size_t>(2 * dims_.columns));
    for (std::int64_t r = 0; r < dims_.rows; ++r) {
      std::memcpy(halves.data(), all.data() + r * dims_.columns,
                  halves.size() * sizeof(bf16));
      for (std::int64_t v = 0; v < dims_.columns; ++v)
        result.push_back(fp32_of(halves[static_cast<std::size_t>(v)].bits));
    }
    return result;
  }

private:
  static std::vector<std::uint16_t> halves_of(const std::vector<float>& logits,
                                              const stored_array::size& dims) {
    const auto stride = dims.columns + dims.gap;
    std::vector<float> all(static_cast<std::size_t>(dims.rows * stride),
                           std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t r = 0; r < dims.rows; ++r)
      std::copy_n(logits.begin() + r * dims.columns, dims.columns,
                  all.begin() + r * stride);
    std::vector<std::uint16_t> result(2 * all.size());
    std::memcpy(result.data(), all.data(), all.size() * sizeof all[0]);
    return result;
  }

  stored_array::size dims_;
  precision stored_;
  std::unique_ptr<gpu::array<std::uint16_t>> memory_;
};

gpu::results of_gpu(const batch& from, std::int64_t gap) {
  return gpu::in_every_order([&] {
    const gpu_logits logits{from.logits, {from.rows, from.classes, gap}, from.stored};
    const gpu::array<std::int32_t> labels{"labels", from.labels},
      correct{"correct", from.rows};
    const gpu::array<float> row_losses{"row_losses", from.rows};
    cuda::cross_entropy::forward(logits.logits(), labels.data(), scale,
                                 logits.gradient(), row_losses.data(), correct.data(),
                                 nullptr);
    gpu::wait();
    return gpu::results{logits.gradient_values(), row_losses.values(),
                        gpu::as_floats(correct.values())};
  });
}

/// True if gradients are what the exact ones round to, apart from errors of fp32, which
/// count relative to the scale where a label's column cancels.
bool are_near(const std::vector<float>& made, const std::vector<double>& exact,
              precision stored) {
  const double rounding = stored == precision::bf16 ? 0x1p-8 : 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    if (!(std::abs(made.at(i) - exact[i])
          <= (rounding + gpu::near_fp32) * std::abs(exact[i]) + 1e-6 * scale))
      return false;
  return true;
}

std::vector<float> columns_of(const batch& from, std::int64_t first,
                              std::int64_t count) {
  std::vector<float> result;
  for (std::int64_t r = 0; r < from.rows; ++r) {
    const auto* const row =
      &from.logits[static_cast<std::size_t>(r * from.classes + first)];
    result.insert(result.end(), row, row + count);
  }
  return result;
}

} // namespace

TEST_CASE("a GPU's loss and its gradient are the CPU's", "[cuda]") {
  GPU_OR_SKIP();
  const auto [R, V, gap] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
    {{1, 1, 0}, {5, 7, 2}, {9, 33, 0}, {6, 304, 8}, {4, 1003, 5}, {3, 8200, 0}}));
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  CAPTURE(R, V, gap, stored);
  const auto batch = some_batch(R, V, stored);
  const auto made = of_gpu(batch, gap);
  const auto expected = of_cpu(batch);
  CHECK(are_near(made[0], expected.gradient, stored));
  CHECK(relative_difference(made[1], expected.row_losses) < gpu::near_fp32);
  CHECK(made[2] == expected.correct);
}

// Blocks hold rows of up to 2,048, 8,192, 25,600 and 51,200 columns. Longer rows are
// read twice.
TEST_CASE("gradients of bf16 of any length are a GPU's and the CPU's", "[cuda]") {
  GPU_OR_SKIP();
  const auto columns =
    GENERATE(as<std::int64_t>{}, 8, 2048, 2056, 8192, 8200, 25608, 50304, 51208);
  CAPTURE(columns);
  auto batch = some_batch(2, columns, precision::bf16);
  batch.row(1)[columns - 2] = 8; // the largest logit is in the last pack
  batch.label(1) = static_cast<std::int32_t>(columns - 2);
  const auto made = of_gpu(batch, 8);
  const auto expected = of_cpu(batch);
  CHECK(are_near(made[0], expected.gradient, precision::bf16));
  CHECK(relative_difference(made[1], expected.row_losses) < gpu::near_fp32);
  CHECK(made[2] == expected.correct);
}

TEST_CASE("a GPU adds up what rows say in double", "[cuda]") {
  GPU_OR_SKIP();
  const auto rows = GENERATE(std::int64_t{1}, std::int64_t{255}, std::int64_t{1000});
  auto losses = random_values<float>(rows, 4);
  losses.front() = 1e8F; // an fp32 sum would lose most of the neighbours
  std::vector<std::int32_t> hits;
  for (std::int64_t r = 0; r < rows; ++r)
    hits.push_back(r % 3 == 0 ? 1 : 0);
  const gpu::array<float> row_losses{"row_losses", losses};
  const gpu::array<std::int32_t> correct{"correct", hits};
  const gpu::array<loss_sum> sum{"sum", 1};
  cuda::cross_entropy::sum(row_losses.data(), correct.data(), rows, sum.data(),
                           nullptr);
  gpu::wait();
  const auto made = sum.values().front();
  const double expected = std::accumulate(losses.begin(), losses.end(), 0.0);
  CHECK(std::abs(made.loss - expected) < 1e-6);
  CHECK(made.correct == (rows + 2) / 3);
}

TEST_CASE("tensor shards of a GPU say of their classes what one says of all",
          "[cuda]") {
  GPU_OR_SKIP();
  const auto [R, V, gap, begins] =
    GENERATE(table<std::int64_t, std::int64_t, std::int64_t, std::vector<std::int64_t>>(
      {{1, 1, 0, {0, 1}},
       {9, 37, 1, {0, 36, 37}},
       {7, 304, 8, {0, 8, 280, 304}},
       {3, 1300, 0, {0, 1100, 1300}}}));
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  CAPTURE(R, V, gap, stored);
  auto batch = some_batch(R, V, stored);
  if (R == 9)
    batch.row(1)[V - 1] = 150; // e^150 is no fp32
  const auto shards = static_cast<int>(begins.size()) - 1;
  const auto count = [&begins = begins](int s) {
    return begins[static_cast<std::size_t>(s) + 1]
           - begins[static_cast<std::size_t>(s)];
  };
  const auto first = [&begins = begins](int s) {
    return begins[static_cast<std::size_t>(s)];
  };

  const auto made = gpu::in_every_order([&, R = R, gap = gap] {
    const gpu::array<std::int32_t> labels{"labels", batch.labels};
    const gpu::array<float> facts{"facts", 3 * R * shards};
    std::vector<gpu_logits> logits;
    for (int s = 0; s < shards; ++s) {
      logits.emplace_back(columns_of(batch, first(s), count(s)),
                          stored_array::size{R, count(s), gap}, stored);
      cuda::cross_entropy::prepare(logits.back().logits(), first(s), labels.data(),
                                   facts.data() + 3 * R * s, nullptr);
    }
    gpu::results all;
    gpu::wait();
    for (int s = 0; s < shards; ++s)
      REQUIRE(gpu::same_bits(logits[static_cast<std::size_t>(s)].values(),
                             columns_of(batch, first(s), count(s))));
    for (int s = 0; s < shards; ++s) {
      const gpu::array<float> row_losses{"row_losses", R};
      const gpu::array<std::int32_t> correct{"correct", R};
      const auto& part = logits[static_cast<std::size_t>(s)];
      cuda::cross_entropy::finish(part.logits(), first(s), labels.data(), facts.data(),
                                  shards, s, scale, part.gradient(), row_losses.data(),
                                  correct.data(), nullptr);
      gpu::wait();
      all.push_back(part.gradient_values());
      all.push_back(row_losses.values());
      all.push_back(gpu::as_floats(correct.values()));
    }
    return all;
  });

  const auto expected = of_cpu(batch);
  for (int s = 0; s < shards; ++s) {
    CAPTURE(s);
    const auto at = 3 * static_cast<std::size_t>(s);
    std::vector<double> gradient;
    for (std::int64_t r = 0; r < R; ++r)
      for (std::int64_t v = first(s); v < first(s) + count(s); ++v)
        gradient.push_back(expected.gradient[static_cast<std::size_t>(r * V + v)]);
    CHECK(are_near(made[at], gradient, stored));
    CHECK(relative_difference(made[at + 1], expected.row_losses) < gpu::near_fp32);
    CHECK(made[at + 2] == expected.correct);
  }
}

TEST_CASE("a GPU takes the first of equal logits", "[cuda]") {
  GPU_OR_SKIP();
  const auto classes = GENERATE(std::int64_t{5}, std::int64_t{1032});
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  batch all{
    4, classes, stored, std::vector<float>(static_cast<std::size_t>(4 * classes)), {}};
  const auto last = static_cast<std::int32_t>(classes - 1);
  all.labels = {0, 1, last, 3};
  all.row(3)[3] = all.row(3)[last] = 1; // the first of two
  const auto made = of_gpu(all, GENERATE(0, 3));
  CHECK(made[2] == std::vector<float>{1, 0, 0, 1});
}

TEST_CASE("classes that cannot be have no gradient on a GPU", "[cuda]") {
  GPU_OR_SKIP();
  // Whole warps find only such values.
  const auto classes = GENERATE(std::int64_t{603}, std::int64_t{1032});
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  auto batch = some_batch(3, classes, stored);
  for (std::int64_t r = 0; r < 3; ++r) {
    std::fill_n(batch.row(r), 600, -infinity);
    batch.label(r) = 602;
  }
  const auto made = of_gpu(batch, 0);
  const auto expected = of_cpu(batch);
  CHECK(are_near(made[0], expected.gradient, stored));
  CHECK(relative_difference(made[1], expected.row_losses) < gpu::near_fp32);
  CHECK(made[0][599] == 0);
}

TEST_CASE("a NaN among logits is its row's loss, on a GPU too", "[cuda]") {
  GPU_OR_SKIP();
  const auto at = GENERATE(0, 5, 38, 39);
  auto batch = some_batch(3, 40, GENERATE(precision::fp32, precision::bf16));
  std::fill_n(batch.row(1), 40, -infinity);
  batch.row(1)[at] = std::numeric_limits<float>::quiet_NaN();
  const auto made = of_gpu(batch, GENERATE(0, 3));
  CHECK(made[1][0] == made[1][0]);
  CHECK(made[1][1] != made[1][1]);
  CHECK(made[1][2] == made[1][2]);
  CHECK(made[2][1] == 0);
  CHECK(std::all_of(made[0].begin() + 40, made[0].begin() + 80,
                    [](float gradient) { return gradient != gradient; }));
}

} // namespace troupe::loss_test
