// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cross_entropy.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::loss_test {

namespace {

constexpr std::int64_t R = 40, V = 21;

template <class Scalar>
loss_sum loss_of(std::vector<Scalar>& logits, Scalar scale, int threads = 1) {
  const auto labels = random_labels(R, V, 5);
  std::vector<Scalar> losses(R);
  stream on{threads};
  loss_sum result;
  const auto rows = dense(logits.data(), R, V);
  cross_entropy<Scalar>::forward(rows, labels.data(), scale, rows, losses.data(),
                                 result, on);
  return result;
}

} // namespace

TEST_CASE("cross-entropy is the negative log-likelihood of the labels",
          "[cross_entropy]") {
  auto logits = random_values<double>(R * V, 1);
  const auto labels = random_labels(R, V, 5);
  double expected = 0;
  for (std::size_t r = 0; r < R; ++r) {
    double sum = 0;
    for (std::size_t v = 0; v < V; ++v)
      sum += std::exp(logits[r * V + v]);
    expected -=
      std::log(std::exp(logits[r * V + static_cast<std::size_t>(labels[r])]) / sum);
  }
  CHECK(std::abs(loss_of(logits, 1.0).loss - expected) < 1e-10);
}

TEST_CASE("its gradient is that of finite differences", "[cross_entropy]") {
  const auto logits = random_values<double>(R * V, 1);
  auto gradient = logits;
  loss_of(gradient, 0.5);
  const auto half_loss = [](std::vector<double> at) {
    return loss_of(at, 1.0).loss / 2;
  };
  CHECK(relative_difference(gradient, finite_differences(half_loss, logits)) < 1e-7);
}

TEST_CASE("cross-entropy in float agrees with double, on any number of threads",
          "[cross_entropy]") {
  auto fast = random_values<float>(R * V, 1);
  auto together = fast;
  auto exact = random_values<double>(R * V, 1);
  const auto loss = loss_of(fast, 1.0F), same = loss_of(together, 1.0F, 3);
  const auto true_loss = loss_of(exact, 1.0);
  CHECK(std::abs(loss.loss / true_loss.loss - 1) < 1e-6);
  CHECK(loss.correct == true_loss.correct);
  CHECK(relative_difference(fast, exact) < 1e-6);
  CHECK(fast == together);
  CHECK(loss.loss == same.loss);
}

TEST_CASE("huge logits neither overflow nor hide an infinity", "[cross_entropy]") {
  auto logits = random_values<float>(R * V, 1);
  for (auto& x : logits)
    x *= 1e4F;
  CHECK(std::isfinite(loss_of(logits, 1.0F).loss));
  logits.assign(R * V, std::numeric_limits<float>::infinity());
  CHECK_FALSE(std::isfinite(loss_of(logits, 1.0F).loss));
}

namespace {

/// Rows in which many classes have the largest logit.
std::vector<float> rows_of_ties() {
  auto logits = random_values<float>(R * V, 3);
  for (auto& x : logits)
    x = std::round(x); // few values, each of several classes
  std::fill_n(logits.begin(), V, 0.0F);
  return logits;
}

/// The rows whose label is the first of the largest logits, by the definition.
std::int64_t first_of_largest(const std::vector<float>& logits,
                              const std::vector<std::int32_t>& labels) {
  std::int64_t count = 0;
  for (std::size_t r = 0; r < R; ++r) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(r * V);
    count += std::max_element(row, row + V) - row == labels[r];
  }
  return count;
}

/// The number of correct rows that tensor shards find. \param ends of the classes of
/// each shard
std::int64_t correct_of_shards(const std::vector<float>& logits,
                               const std::vector<std::int32_t>& labels,
                               const std::vector<std::int64_t>& ends) {
  const auto facts = static_cast<std::size_t>(cross_entropy<float>::facts(R));
  const auto shards = static_cast<int>(ends.size());
  std::vector<float> all(facts * ends.size()), losses(R);
  std::vector<std::vector<float>> parts;
  stream on;
  std::int64_t first = 0;
  for (std::size_t s = 0; s < ends.size(); first = ends[s++]) {
    auto& part = parts.emplace_back();
    for (std::int64_t r = 0; r < R; ++r)
      part.insert(part.end(), logits.begin() + r * V + first,
                  logits.begin() + r * V + ends[s]);
    cross_entropy<float>::prepare(dense(part.data(), R, ends[s] - first), first,
                                  labels.data(), &all[facts * s], on);
  }
  loss_sum sum;
  const auto part = dense(parts[0].data(), R, ends[0]);
  cross_entropy<float>::finish(part, 0, labels.data(), all.data(), shards, 0, 1, part,
                               losses.data(), sum, on);
  return sum.correct;
}

} // namespace

TEST_CASE("of equal logits the first is the prediction", "[cross_entropy]") {
  auto zeros = std::vector<double>(R * V);
  const auto labels = random_labels(R, V, 5);
  CHECK(loss_of(zeros, 1.0).correct == std::ranges::count(labels, 0));
  auto ties = rows_of_ties();
  const auto expected = first_of_largest(ties, labels);
  CHECK(loss_of(ties, 1.0F, 2).correct == expected);
}

TEST_CASE("of equal logits in several tensor shards the first is the prediction",
          "[cross_entropy]") {
  const auto ties = rows_of_ties(), zeros = std::vector<float>(R * V);
  // Labels at which a row has its largest logit, so that ties decide.
  auto labels = random_labels(R, V, 5);
  for (std::size_t r = 0; r < R; ++r) {
    const auto row = ties.begin() + static_cast<std::ptrdiff_t>(r * V);
    const auto most = *std::max_element(row, row + V);
    while (row[labels[r]] != most)
      labels[r] = (labels[r] + 1) % V;
  }
  const auto expected = first_of_largest(ties, labels);
  REQUIRE(expected > 5);
  REQUIRE(expected < R - 5);
  for (const std::vector<std::int64_t>& ends : std::vector<std::vector<std::int64_t>>{
         {V}, {10, V}, {1, 3, V}, {7, 14, 20, V}}) {
    CHECK(correct_of_shards(ties, labels, ends) == expected);
    CHECK(correct_of_shards(zeros, labels, ends) == std::ranges::count(labels, 0));
  }
}

namespace {

/// Columns [first, last) of (R, V), with a gap behind each row, and the gradient in the
/// same memory.
class shard_logits {
public:
  static constexpr std::int64_t gap = 3;

  shard_logits(const std::vector<float>& logits, std::int64_t first, std::int64_t last,
               precision stored)
    : columns_(last - first),
      stored_(stored),
      values_(static_cast<std::size_t>(R * (columns_ + gap)), 77.0F) {
    for (std::int64_t r = 0; r < R; ++r)
      for (std::int64_t v = first; v < last; ++v)
        matrix().row(r)[v - first] = logits[static_cast<std::size_t>(r * V + v)];
  }

  troupe::matrix<float> matrix() {
    return {values_.data(), R, columns_, columns_ + gap};
  }

  stored_matrix<float> gradient() { return gradient_of_logits(matrix(), stored_); }

  float logit(std::int64_t r, std::int64_t v) { return matrix().row(r)[v]; }

  float value(std::int64_t r, std::int64_t v) {
    return stored_ == precision::bf16 ? fp32_of(gradient().rounded().row(r)[v].bits)
                                      : logit(r, v);
  }

  bool gaps_are_untouched() {
    for (std::int64_t r = 0; r < R; ++r)
      for (auto v = columns_; v < columns_ + gap; ++v)
        if (logit(r, v) != 77)
          return false;
    return true;
  }

private:
  std::int64_t columns_;
  precision stored_;
  std::vector<float> values_;
};

/// Softmax and cross-entropy of (R, V), by the definition in double.
struct definition {
  std::vector<double> gradient, row_losses;

  definition(const std::vector<float>& logits, const std::vector<std::int32_t>& labels,
             double scale) {
    for (std::size_t r = 0; r < R; ++r) {
      double sum = 0;
      for (std::size_t v = 0; v < V; ++v)
        sum += std::exp(double{logits[r * V + v]});
      const auto label = static_cast<std::size_t>(labels[r]);
      row_losses.push_back(std::log(sum) - double{logits[r * V + label]});
      for (std::size_t v = 0; v < V; ++v)
        gradient.push_back(
          scale * (std::exp(double{logits[r * V + v]}) / sum - (v == label ? 1 : 0)));
    }
  }
};

/// Checks gradients of columns from `first` on: a stored value is off by a rounding and
/// a few errors of fp32.
void check_gradient(shard_logits& made, std::int64_t first, std::int64_t last,
                    const definition& expected, precision stored) {
  const double relative = stored == precision::bf16 ? 0x1p-8 : 1e-6;
  for (std::int64_t r = 0; r < R; ++r)
    for (auto v = first; v < last; ++v) {
      const auto exact = expected.gradient[static_cast<std::size_t>(r * V + v)];
      CAPTURE(r, v, exact, made.value(r, v - first));
      REQUIRE(std::abs(double{made.value(r, v - first)} - exact)
              <= relative * std::abs(exact) + 1e-7);
    }
  CHECK(made.gaps_are_untouched());
}

} // namespace

TEST_CASE("a loss is the definition's, and its gradient is rounded once",
          "[cross_entropy][bf16]") {
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const auto logits = random_values<float>(R * V, 7);
  const auto labels = random_labels(R, V, 5);
  const definition expected{logits, labels, 0.5};
  shard_logits made{logits, 0, V, stored}, together = made;
  std::vector<float> row_losses(R), same_losses(R);
  loss_sum sum, same_sum;
  stream one{1}, three{3};
  cross_entropy<float>::forward(made.matrix(), labels.data(), 0.5F, made.gradient(),
                                row_losses.data(), sum, one);
  cross_entropy<float>::forward(together.matrix(), labels.data(), 0.5F,
                                together.gradient(), same_losses.data(), same_sum,
                                three);
  check_gradient(made, 0, V, expected, stored);
  CHECK(relative_difference(row_losses, expected.row_losses) < 1e-6);
  CHECK(sum.correct == first_of_largest(logits, labels));
  for (std::int64_t r = 0; r < R; ++r)
    for (std::int64_t v = 0; v < V; ++v)
      REQUIRE(made.value(r, v) == together.value(r, v));
  CHECK(row_losses == same_losses);
  CHECK(sum.loss == same_sum.loss);
}

TEST_CASE("tensor shards of logits have the loss and the gradient of the definition",
          "[cross_entropy][bf16]") {
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const auto begins = GENERATE(values<std::vector<std::int64_t>>(
    {{0, V}, {0, 10, V}, {0, 1, 3, V}, {0, 7, 14, 20, V}}));
  const auto logits = random_values<float>(R * V, 7);
  const auto labels = random_labels(R, V, 5);
  const definition expected{logits, labels, 0.5};
  const auto shards = static_cast<int>(begins.size()) - 1;
  const auto facts = cross_entropy<float>::facts(R);
  std::vector<float> all(static_cast<std::size_t>(shards * facts)), row_losses(R);
  std::vector<shard_logits> parts;
  stream on;
  for (std::size_t s = 0; s + 1 < begins.size(); ++s) {
    parts.emplace_back(logits, begins[s], begins[s + 1], stored);
    cross_entropy<float>::prepare(parts.back().matrix(), begins[s], labels.data(),
                                  all.data() + static_cast<std::int64_t>(s) * facts,
                                  on);
    for (std::int64_t r = 0; r < R; ++r) // only read
      for (auto v = begins[s]; v < begins[s + 1]; ++v)
        REQUIRE(parts.back().logit(r, v - begins[s])
                == logits[static_cast<std::size_t>(r * V + v)]);
  }
  for (int s = 0; s < shards; ++s) {
    const auto first = begins[static_cast<std::size_t>(s)],
               last = begins[static_cast<std::size_t>(s) + 1];
    auto& part = parts[static_cast<std::size_t>(s)];
    loss_sum sum;
    cross_entropy<float>::finish(part.matrix(), first, labels.data(), all.data(),
                                 shards, s, 0.5F, part.gradient(), row_losses.data(),
                                 sum, on);
    check_gradient(part, first, last, expected, stored);
    CHECK(relative_difference(row_losses, expected.row_losses) < 1e-6);
    CHECK(sum.correct == first_of_largest(logits, labels));
  }
}

TEST_CASE("a gradient of bf16 has the bits of the rounded gradient of fp32",
          "[cross_entropy][bf16]") {
  // Parts of 1,024 values overwrite logits that later parts still read.
  const auto columns = GENERATE(as<std::int64_t>{}, 1, 1023, 1024, 1025, 3000);
  constexpr std::int64_t rows = 3;
  const auto labels = random_labels(rows, static_cast<int>(columns), 6);
  auto exact = random_values<float>(rows * columns, 8), shared = exact;
  std::vector<float> row_losses(rows), same_losses(rows);
  loss_sum sum, same_sum;
  stream on;
  const auto of_exact = dense(exact.data(), rows, columns),
             of_shared = dense(shared.data(), rows, columns);
  cross_entropy<float>::forward(of_exact, labels.data(), 0.5F, of_exact,
                                row_losses.data(), sum, on);
  const auto gradient = gradient_of_logits(of_shared, precision::bf16);
  cross_entropy<float>::forward(of_shared, labels.data(), 0.5F, gradient,
                                same_losses.data(), same_sum, on);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t v = 0; v < columns; ++v)
      REQUIRE(gradient.rounded().row(r)[v].bits
              == bf16_of(rounded_to_bf16(of_exact.row(r)[v])));
  CHECK(row_losses == same_losses);
}

} // namespace troupe::loss_test
