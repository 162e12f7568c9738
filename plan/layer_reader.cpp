// SPDX-License-Identifier: BSD-3-Clause
#include "plan/layer_reader.hpp"

#include "plan/layout.hpp"

namespace troupe {

const std::vector<float>& layer_reader::values(const layer_bucket& bucket) {
  const auto &whole = *plan_.work->whole.layers[bucket.of_layer],
             &shard = *bucket.owner;
  if (layer_ != bucket.of_layer) {
    whole_values_.assign(static_cast<std::size_t>(whole.bucket()), 0);
    source_(bucket.of_layer, whole_values_.data());
    layer_ = bucket.of_layer;
  }
  if (plan_.work->shards.empty())
    return whole_values_;
  shard_values_.resize(static_cast<std::size_t>(shard.bucket()));
  extract_shard(whole, shard, whole_values_.data(), shard_values_.data());
  return shard_values_;
}

} // namespace troupe
