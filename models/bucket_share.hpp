// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shares of buckets, by which optimizer shards divide the update of parameters.

#include "kernels/stream.hpp"
#include "models/layer.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// One of `count` shares of a bucket: the contiguous values that one optimizer shard
/// updates (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
/// Parameter Models", 2020). Sizes of shares differ by at most one value. A bucket that
/// is not divided has one share, the whole bucket.
struct bucket_share {
  int index = 0;
  int count = 1;

  // First value, end and size of the share, in a bucket of `values` values.
  std::int64_t begin(std::int64_t values) const { return values * index / count; }
  std::int64_t end(std::int64_t values) const { return values * (index + 1) / count; }
  std::int64_t held(std::int64_t values) const { return end(values) - begin(values); }
};

/// One share of each bucket, in the order of the layers; empty: the whole of every
/// bucket.
using bucket_shares = std::vector<bucket_share>;

/// The extent of the arrays that hold a bucket's values.
enum class bucket_extent : std::uint8_t {
  whole,
  share, ///< The share alone, from the share's first value on.
};

/// Adjacent values of one parameter in a bucket: offsets [begin, end) in the whole
/// bucket. `bucket` is an index among the layers that parts_of() received.
struct parameter_part {
  std::size_t bucket;
  std::int64_t begin;
  std::int64_t end;
  bool of_matrix; ///< False for a bias and for the gain of a norm.
  bool of_shard;  ///< Other tensor shards hold other parts of the parameter.
  bool of_copy;   ///< The parameter is tied to a parameter of another bucket.

  std::int64_t share_begin; ///< Offset of the share's first value in the bucket.

  std::int64_t values() const { return end - begin; }

  /// The offset of the part's first value in an array of this extent.
  std::int64_t offset_in(bucket_extent extent) const {
    return extent == bucket_extent::whole ? begin : begin - share_begin;
  }
};

/// The parts of parameters that lie in shares of the layers' buckets, in the model's
/// order. The result does not refer to `layers`.
std::vector<parameter_part> parts_of(const layer_list<float>& layers,
                                     const bucket_shares& shares = {});

/// Returns sums of squares, one for each part that is measured, in order. Parts of
/// copies are left out, so that a tied matrix counts once.
/// \param buckets one array of `extent` for each layer that parts_of() received
/// \param shards_only true: leaves out parameters that all tensor shards hold whole
std::vector<double> squares_of(const std::vector<parameter_part>& parts,
                               const std::vector<const float*>& buckets,
                               stream& compute_stream, bool shards_only = false,
                               bucket_extent extent = bucket_extent::whole);

/// The sum of squares_of(), added in another order, and faster: for reports on the CPU.
double total_square_of(const std::vector<parameter_part>& parts,
                       const std::vector<const float*>& buckets, stream& compute_stream,
                       bool shards_only, bucket_extent extent);

} // namespace troupe
