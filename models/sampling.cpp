// SPDX-License-Identifier: BSD-3-Clause
#include "models/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

namespace {

void check(std::span<const float> logits) {
  const auto invalid =
    std::ranges::find_if_not(logits, [](float x) { return std::isfinite(x); });
  if (invalid != logits.end())
    throw std::runtime_error("the logit of token "
                             + std::to_string(invalid - logits.begin()) + " is "
                             + (std::isnan(*invalid) ? "not a number" : "infinite")
                             + ": the weights are unusable");
}

/// The tokens that may be chosen, in increasing order.
std::vector<std::int32_t> candidates(std::span<const float> logits,
                                     std::int64_t top_k) {
  std::vector<std::int32_t> result(logits.size());
  std::iota(result.begin(), result.end(), 0);
  if (top_k == 0 || top_k >= std::ssize(logits))
    return result;
  const auto larger = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)],
                y = logits[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  };
  std::ranges::nth_element(result, result.begin() + top_k, larger);
  result.resize(static_cast<std::size_t>(top_k));
  std::ranges::sort(result);
  return result;
}

} // namespace

std::int32_t sample(std::span<const float> logits, const sampling_options& options,
                    double random) {
  check(logits);
  const auto largest = std::ranges::max_element(logits);
  if (options.temperature == 0)
    return static_cast<std::int32_t>(largest - logits.begin());
  const auto tokens = candidates(logits, options.top_k);
  std::vector<double> sums;
  double sum = 0;
  for (const auto token : tokens) {
    const double below = double{logits[static_cast<std::size_t>(token)]} - *largest;
    sums.push_back(sum += std::exp(below / options.temperature));
  }
  const auto chosen = std::ranges::upper_bound(sums, random * sum);
  return tokens[static_cast<std::size_t>(
    std::min(chosen - sums.begin(), std::ssize(sums) - 1))];
}

} // namespace troupe
