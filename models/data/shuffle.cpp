// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/shuffle.hpp"

#include "models/random.hpp"

#include <bit>

namespace troupe {

epoch_shuffle::epoch_shuffle(std::int64_t size, std::uint64_t seed)
  : size_(size), seed_(seed) {
  const auto bits = std::bit_width(static_cast<std::uint64_t>(size - 1));
  half_bits_ = (static_cast<int>(bits) + 1) / 2;
}

std::int64_t epoch_shuffle::item_at(std::int64_t index) const {
  const auto epoch = static_cast<std::uint64_t>(index / size_);
  auto value = static_cast<std::uint64_t>(index % size_);
  do
    value = permute(value, epoch);
  while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

std::uint64_t epoch_shuffle::permute(std::uint64_t value, std::uint64_t epoch) const {
  constexpr std::uint64_t rounds = 4;
  const random_stream keys{seed_, epoch};
  const auto mask = (std::uint64_t{1} << half_bits_) - 1;
  auto left_half = value >> half_bits_, right_half = value & mask;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto mixed = left_half ^ (keys.bits(right_half * rounds + round) & mask);
    left_half = right_half;
    right_half = mixed;
  }
  return left_half << half_bits_ | right_half;
}

} // namespace troupe
