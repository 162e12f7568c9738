#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// How far a run has come; what the last finished minibatch lost, if anything is
/// computed.
struct progress {
  std::int64_t samples = 0; ///< Of microbatches whose losses have come.
  std::optional<double> loss;
  std::string waits_for =
    {}; ///< Lines about those at work, if none has ended for long.
};

/// How a run ended.
enum class ending : std::uint8_t { finished, interrupted, failed };

} // namespace troupe
