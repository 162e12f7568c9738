#pragma once

#include "kernels/memory.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// How a parameter begins.
enum class beginning : std::uint8_t { zeros, ones, normal, uniform };

/// A tensor of parameters: its name and orientation are those of the weight file.
struct parameter {
  std::string name;
  std::vector<std::int64_t> dims;
  beginning begins;
  double scale = 0;        ///< Standard deviation, or half the width of the range.
  std::int64_t offset = 0; ///< Of its first value in its layer's bucket.

  std::int64_t values() const;

  /// Whether it is a matrix, not a bias or the gain of a norm.
  bool is_matrix() const { return dims.size() > 1; }
};

/// Places parameters one after another in a bucket, each on a cache line of its own.
/// Returns the bucket's size in values.
std::int64_t place_in_bucket(std::vector<parameter>& parameters);

/// Writes the parameter's first values. They depend on seed, name and dims alone, so
/// not on how the network is cut.
template <class Scalar>
void initialise(const parameter& p, std::uint64_t seed, Scalar* values);

/// Where buckets lie, for those who read them.
template <class Buckets>
std::vector<const float*> readable(const Buckets& buckets) {
  std::vector<const float*> result;
  for (const auto& b : buckets)
    result.push_back(b.data());
  return result;
}

/// Where buckets lie, for those who write them.
template <class Buckets>
std::vector<float*> writable(Buckets& buckets) {
  std::vector<float*> result;
  for (auto& b : buckets)
    result.push_back(b.data());
  return result;
}

} // namespace troupe
