// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/bucket_share.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// A bucket of gradients, and who measures it for a norm.
struct gradient_bucket {
  std::shared_ptr<const layer<float>> what;
  /// The share that each of them measures, in their order; absent: nothing.
  std::vector<std::optional<bucket_share>> measured = {bucket_share{}};
};

/// The buckets in which replicas sum the gradients of some layers, and measure them for
/// a norm. A layer has one; a block with experts has several that make it up together:
/// one without its experts, and one of each expert. Chunks of a ring and shares of ZeRO
/// are of these buckets, so the bits of a sum depend on them.
class gradient_buckets {
public:
  /// Sums n values of all replicas' arrays into the first.
  using sum_function =
    std::function<void(const std::vector<float*>& arrays, std::int64_t n)>;

  /// \param made_of for each of `layers` what makes it up: itself alone if it has one
  /// bucket \pre all are measured by equally many
  gradient_buckets(layer_list<float> layers,
                   std::vector<std::vector<gradient_bucket>> made_of);

  /// Sums a layer's gradients, bucket by bucket. \param arrays a replica each, laid out
  /// as the layer
  void sum(std::size_t layer, const std::vector<float*>& arrays,
           const sum_function& how) const;

  /// Sums of squares, a parameter each: what the first measures of every bucket, then
  /// the second. \param gradients laid out as the layers
  std::vector<double> squares(const std::vector<const float*>& gradients,
                              stream& on) const;

private:
  bool is_whole(std::size_t layer) const;

  layer_list<float> layers_;
  std::vector<std::vector<gradient_bucket>> made_of_;
};

} // namespace troupe
