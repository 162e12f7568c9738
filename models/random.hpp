// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

/// Random numbers without a state: the n-th number of a stream is a function of the
/// seed, the stream and n. (Steele et al., "Fast Splittable Pseudorandom Number
/// Generators", 2014: the finaliser of SplitMix64, applied to a mixed counter.)
class random_stream {
public:
  random_stream(std::uint64_t seed, std::uint64_t stream);
  random_stream(std::uint64_t seed, std::string_view stream);

  std::uint64_t bits(std::uint64_t n) const;

  /// A number in [0, 1), with 53 random bits.
  double uniform(std::uint64_t n) const;

  /// An integer in [0, below).
  /// \pre below > 0
  std::int64_t below(std::uint64_t n, std::int64_t below) const;

  /// A normal number with mean 0 and standard deviation 1.
  double normal(std::uint64_t n) const;

  /// Returns normal(n) if above 0, else 0. Takes half the time of normal() on average,
  /// as a negative number is not computed.
  double normal_above_zero(std::uint64_t n) const;

private:
  std::uint64_t key_;
};

} // namespace troupe
