// SPDX-License-Identifier: BSD-3-Clause
// Numbers of random cases, for which the environment can ask.
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>

/// The number of random configurations to test, and their seed.
struct random_range {
  std::uint64_t number, seed;
};

/// The usual number from seed 1, or the range in TROUPE_RANDOM: "NUMBER" or
/// "NUMBER,SEED".
inline random_range wished(std::uint64_t usual) {
  random_range result{usual, 1};
  if (const auto* const wish = std::getenv("TROUPE_RANDOM")) {
    char* end = nullptr;
    result.number = std::strtoull(wish, &end, 10);
    if (*end == ',')
      result.seed = std::strtoull(end + 1, &end, 10);
    REQUIRE((result.number > 0 && *end == '\0'));
  }
  return result;
}

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
