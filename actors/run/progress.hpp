// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The mean loss of a minibatch (under a local rule: of a microbatch), and the samples
/// of the run up to its end.
struct loss_so_far {
  std::int64_t samples;
  double loss;

  bool operator==(const loss_so_far&) const = default;
};

/// How far a run has come; what the last finished minibatch lost, if anything is
/// computed.
struct progress {
  std::int64_t samples = 0; ///< That updates cover.
  std::optional<double> loss;
  std::string waits_for =
    {}; ///< Lines about those at work, if none has ended for long.
  std::vector<loss_so_far> losses = {}; ///< That came since the last report, in order.
};

/// How a run ended.
enum class ending : std::uint8_t { finished, interrupted, failed };

} // namespace troupe
