// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe {

/// Another order of `size` items in each epoch. No order is stored: a Feistel network
/// computes the item at a position, on the smallest even number of bits that can hold
/// size - 1. The network is applied again until the item is below `size`. (Black &
/// Rogaway, "Ciphers with Arbitrary Finite Domains", 2002.)
class epoch_shuffle {
public:
  /// \pre size >= 1
  epoch_shuffle(std::int64_t size, std::uint64_t seed);

  /// The item at position `index` of the run. Each epoch of `size` positions has each
  /// item once.
  std::int64_t item_at(std::int64_t index) const;

private:
  std::uint64_t permute(std::uint64_t value, std::uint64_t epoch) const;

  std::int64_t size_;
  std::uint64_t seed_;
  int half_bits_;
};

} // namespace troupe
