// SPDX-License-Identifier: BSD-3-Clause
#include "models/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe {

namespace {

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// The FNV-1a hash of a text.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text)
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

} // namespace

random_stream::random_stream(std::uint64_t seed, std::uint64_t stream)
  : key_(mix(mix(seed + golden) ^ (stream * golden))) {
  // nop
}

random_stream::random_stream(std::uint64_t seed, std::string_view stream)
  : random_stream(seed, hash(stream)) {
  // nop
}

std::uint64_t random_stream::bits(std::uint64_t n) const {
  return mix(key_ + (n + 1) * golden);
}

double random_stream::uniform(std::uint64_t n) const {
  return static_cast<double>(bits(n) >> 11) * 0x1p-53;
}

std::int64_t random_stream::below(std::uint64_t n, std::int64_t below) const {
  return static_cast<std::int64_t>(uniform(n) * static_cast<double>(below));
}

// Box & Muller: each number is computed from two numbers of the stream.
double random_stream::normal(std::uint64_t n) const {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(2 * n)));
  return radius * std::cos(2 * std::numbers::pi * uniform(2 * n + 1));
}

double random_stream::normal_above_zero(std::uint64_t n) const {
  const double turn = uniform(2 * n + 1);
  if (turn > 0.251 && turn < 0.749) // the cosine is below 0, far from any rounding
    return 0;
  return std::max(0.0, normal(n));
}

} // namespace troupe
