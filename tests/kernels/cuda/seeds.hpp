// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace gpu {

/// The number of seeds of streams for each run; the environment can ask for more.
inline std::uint64_t seeds() {
  const char* const asked = std::getenv("TROUPE_SEEDS");
  return asked != nullptr ? std::stoull(asked) : 1;
}

/// Whether more seeds are asked for; otherwise some runs are skipped, whose risks the
/// remaining runs have too.
inline bool all_runs() {
  return seeds() > 1;
}

} // namespace gpu
