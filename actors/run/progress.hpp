// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The mean loss of a minibatch (under a local rule: of a microbatch). `samples` counts
/// the samples of the run up to the end of that minibatch.
struct loss_so_far {
  std::int64_t samples;
  double loss;

  bool operator==(const loss_so_far&) const = default;
};

/// An update of all stages. `samples` counts the samples of the run up to the end of
/// the update.
struct update_so_far {
  std::int64_t samples;
  double norm; ///< Norm of the mean gradient over all parameters, before clipping.
  double rate; ///< Learning rate.

  bool operator==(const update_so_far&) const = default;
};

/// The progress of a run: samples, losses, and the tasks under way in a slow run.
struct progress {
  /// Number of samples of this run before the first missing loss.
  std::int64_t samples = 0;
  /// Loss of the last minibatch (under a local rule: microbatch) with all losses known.
  /// Absent in a simulation, and before the first such minibatch.
  std::optional<double> loss;
  /// Lines about tasks under way, if no task has ended for the stall timeout; else
  /// empty.
  std::string waits_for = {};
  std::vector<loss_so_far> losses = {};    ///< Losses since the last report, in order.
  std::vector<update_so_far> updates = {}; ///< Updates likewise.
};

/// The outcome of a run.
enum class ending : std::uint8_t { finished, interrupted, failed };

} // namespace troupe
