// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The buckets in which gradients are summed over replicas and measured for a norm.

#include "models/bucket_share.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// A bucket of gradients, and the data replicas that measure the bucket for a norm.
struct gradient_bucket {
  std::shared_ptr<const layer<float>> layout;
  /// The share that each data replica measures, in the replicas' order; absent if the
  /// replica measures none.
  std::vector<std::optional<bucket_share>> measured = {bucket_share{}};
};

/// The buckets in which replicas sum the gradients of some layers, and measure
/// gradients for a norm. A layer has one bucket. A block with experts has several: one
/// without the experts, and one of each expert. Chunks of a ring and shares of ZeRO
/// divide the buckets, so the bits of a sum depend on the buckets.
class gradient_buckets {
public:
  /// Sums n values of all replicas' arrays into the first array.
  using sum_function =
    std::function<void(const std::vector<float*>& arrays, std::int64_t n)>;

  /// \param made_of for each of `layers` the buckets of the layer: the layer itself if
  /// there is one bucket
  /// \pre gradient_bucket::measured has the same size in all buckets
  gradient_buckets(layer_list<float> layers,
                   std::vector<std::vector<gradient_bucket>> made_of);

  /// Sums a layer's gradients into the first replica's array, bucket by bucket. If the
  /// layer has one bucket, `reduction` may change the other arrays too.
  /// \param arrays one for each replica, laid out as the layer
  void sum(std::size_t layer, const std::vector<float*>& arrays,
           const sum_function& reduction) const;

  /// Returns sums of squares: one for each overlap of a parameter with a measured
  /// share. The second copy of a tied matrix is left out. The first replica's sums for
  /// all buckets come first, then the second replica's.
  /// \param gradients laid out as the layers
  std::vector<double> squares(const std::vector<const float*>& gradients,
                              stream& compute_stream) const;

private:
  bool is_whole(std::size_t layer) const;

  layer_list<float> layers_;
  std::vector<std::vector<gradient_bucket>> made_of_;
};

} // namespace troupe
