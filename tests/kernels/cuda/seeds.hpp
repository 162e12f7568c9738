// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace gpu {

/// So many seeds of streams for each run; more where somebody asks for them.
inline std::uint64_t seeds() {
  const char* const asked = std::getenv("TROUPE_SEEDS");
  return asked != nullptr ? std::stoull(asked) : 1;
}

/// Whether somebody does; else runs are left out of which others have all that may go
/// wrong.
inline bool all_runs() {
  return seeds() > 1;
}

} // namespace gpu
