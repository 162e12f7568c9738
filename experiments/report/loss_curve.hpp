// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// The losses of a training, each the mean over the samples since the entry before.
struct loss_curve {
  std::vector<double> loss;          ///< Nats.
  std::vector<std::int64_t> samples; ///< Samples of the training at each entry's end.
  std::vector<double> seconds;     ///< Time of each entry's end; empty: times unknown.
  std::int64_t samples_before = 0; ///< Samples of the training before the first entry.
};

/// The number of samples over which losses are averaged before they are compared with a
/// target: one microbatch's loss would reach the target by chance.
constexpr std::int64_t samples_of_target(std::int64_t batch) {
  return 8 * batch;
}

/// The mean loss of the last `samples` samples before entry `end`, weighted by samples.
/// The oldest entry counts only with as many samples as are needed. Absent without
/// entries.
std::optional<double> mean_loss(const loss_curve& curve, std::size_t end,
                                std::int64_t samples);

/// The time of the last loss; absent if times are unknown or there is no entry.
std::optional<double> end_of(const loss_curve& curve);

/// The samples and seconds after which a training reached a loss.
struct reached_loss {
  std::int64_t samples;          ///< Since the first entry's beginning.
  std::optional<double> seconds; ///< Absent if times are unknown.
};

/// The first entry at which the mean loss of the last `window` samples is at most
/// `target`. Absent if there is none, also before `window` samples.
std::optional<reached_loss> first_at(const loss_curve& curve, double target,
                                     std::int64_t window);

/// The mean loss of the last `window` samples that ended within `seconds`. Absent if
/// times are unknown or nothing ended.
std::optional<double> loss_after(const loss_curve& curve, double seconds,
                                 std::int64_t window);

} // namespace troupe
