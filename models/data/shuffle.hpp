// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe {

/// For each epoch over `size` items an order of its own, without storing any: a Feistel
/// network on the next even number of bits, walked until it lands inside. (Black &
/// Rogaway, "Ciphers with Arbitrary Finite Domains", 2002.)
class epoch_shuffle {
public:
  epoch_shuffle(std::int64_t size, std::uint64_t seed);

  /// The item at place `index` of the run. Each epoch of `size` places has each item
  /// once.
  std::int64_t at(std::int64_t index) const;

private:
  std::uint64_t permute(std::uint64_t value, std::uint64_t epoch) const;

  std::int64_t size_;
  std::uint64_t seed_;
  int half_bits_;
};

} // namespace troupe
