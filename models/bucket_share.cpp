// SPDX-License-Identifier: BSD-3-Clause
#include "models/bucket_share.hpp"

#include "kernels/optimizers.hpp"

#include <algorithm>

namespace troupe {

std::vector<parameter_part> parts_of(const layer_list<float>& layers,
                                     const bucket_shares& shares) {
  std::vector<parameter_part> result;
  for (std::size_t b = 0; b < layers.size(); ++b) {
    const auto share = shares.empty() ? bucket_share{} : shares[b];
    const auto first = share.begin(layers[b]->bucket()),
               last = share.end(layers[b]->bucket());
    for (const auto& p : layers[b]->parameters()) {
      const auto begin = std::max(first, p.offset),
                 end = std::min(last, p.offset + p.values());
      if (begin < end)
        result.push_back(
          {b, begin, end, p.is_matrix(), p.cut.has_value(), !p.tied_to.empty(), first});
    }
  }
  return result;
}

namespace {

/// The arrays of the parts that are measured.
std::vector<std::span<const float>>
measured_arrays(const std::vector<parameter_part>& parts,
                const std::vector<const float*>& buckets, bool shards_only,
                bucket_extent extent) {
  std::vector<std::span<const float>> measured;
  for (const auto& p : parts)
    if (!p.of_copy && (p.of_shard || !shards_only))
      measured.emplace_back(buckets[p.bucket] + p.offset_in(extent),
                            static_cast<std::size_t>(p.values()));
  return measured;
}

} // namespace

std::vector<double> squares_of(const std::vector<parameter_part>& parts,
                               const std::vector<const float*>& buckets,
                               stream& compute_stream, bool shards_only,
                               bucket_extent extent) {
  return sums_of_squares(measured_arrays(parts, buckets, shards_only, extent),
                         compute_stream);
}

double total_square_of(const std::vector<parameter_part>& parts,
                       const std::vector<const float*>& buckets, stream& compute_stream,
                       bool shards_only, bucket_extent extent) {
  return total_of_squares(measured_arrays(parts, buckets, shards_only, extent),
                          compute_stream);
}

} // namespace troupe
