// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/loss_curve.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// Samples of the training at the beginning of an entry.
std::int64_t begin_of(const loss_curve& curve, std::size_t entry) {
  return entry > 0 ? curve.samples[entry - 1] : curve.samples_before;
}

} // namespace

std::optional<double> mean_loss(const loss_curve& curve, std::size_t end,
                                std::int64_t samples) {
  double sum = 0;
  std::int64_t count = 0;
  for (auto i = end; i-- > 0 && count < samples;) {
    const auto part = std::min(curve.samples[i] - begin_of(curve, i), samples - count);
    sum += curve.loss[i] * static_cast<double>(part);
    count += part;
  }
  return count > 0 ? std::optional{sum / static_cast<double>(count)} : std::nullopt;
}

std::optional<double> end_of(const loss_curve& curve) {
  return curve.seconds.empty()
           ? std::nullopt
           : std::optional{*std::ranges::max_element(curve.seconds)};
}

std::optional<reached_loss> first_at(const loss_curve& curve, double target,
                                     std::int64_t window) {
  for (std::size_t i = 0; i < curve.loss.size(); ++i) {
    const auto samples = curve.samples[i] - curve.samples_before;
    if (samples < window || !(mean_loss(curve, i + 1, window) <= target))
      continue;
    // Losses of a local rule may end in another order than their samples.
    return reached_loss{samples,
                        i < curve.seconds.size() ? std::optional{*std::max_element(
                          curve.seconds.begin(),
                          curve.seconds.begin() + static_cast<std::ptrdiff_t>(i) + 1)}
                                                 : std::nullopt};
  }
  return {};
}

std::optional<double> loss_after(const loss_curve& curve, double seconds,
                                 std::int64_t window) {
  const auto end =
    std::ranges::find_if(curve.seconds, [&](double t) { return t > seconds; });
  return mean_loss(curve, static_cast<std::size_t>(end - curve.seconds.begin()),
                   window);
}

} // namespace troupe
