// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stream.hpp"
#include "models/layer.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// One of `count` equal shares of a bucket, each contiguous: what an optimizer shard
/// updates (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
/// Parameter Models", 2020). Where the bucket is not shared out, all of it.
struct bucket_share {
  int index = 0;
  int count = 1;

  // In a bucket of so many values.
  std::int64_t begin(std::int64_t values) const { return values * index / count; }
  std::int64_t end(std::int64_t values) const { return values * (index + 1) / count; }
  std::int64_t held(std::int64_t values) const { return end(values) - begin(values); }
};

/// A share of each bucket; empty: all of every bucket.
using bucket_shares = std::vector<bucket_share>;

/// What arrays a bucket's values are given in.
enum class bucket_extent : std::uint8_t {
  whole,
  share, ///< The share alone, from its beginning on.
};

/// Values of one parameter that stand side by side in a bucket.
struct parameter_part {
  std::size_t bucket;
  std::int64_t begin;
  std::int64_t end;
  bool of_matrix; ///< Not of a bias or of the gain of a norm.
  bool of_shard;  ///< Other tensor shards have other parts of the parameter.
  bool of_copy;   ///< The parameter is tied to one of another bucket.

  std::int64_t share_begin; ///< Where the share begins in the bucket.

  std::int64_t values() const { return end - begin; }

  /// Where it begins in such an array.
  std::int64_t place(bucket_extent extent) const {
    return extent == bucket_extent::whole ? begin : begin - share_begin;
  }
};

/// The parameters in shares of some layers' buckets, in the model's order.
std::vector<parameter_part> parts_of(const layer_list<float>& layers,
                                     const bucket_shares& shares = {});

/// Sums of squares, a part each but those of copies: a tied matrix counts once.
/// \param shards_only leaves out parameters that all tensor shards hold whole
std::vector<double> squares_of(const std::vector<parameter_part>& parts,
                               const std::vector<const float*>& buckets, stream& on,
                               bool shards_only = false,
                               bucket_extent extent = bucket_extent::whole);

} // namespace troupe
