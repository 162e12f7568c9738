// SPDX-License-Identifier: BSD-3-Clause
#include "actors/plan/layer_reader.hpp"

namespace troupe {

const std::vector<float>& layer_reader::values(const layer_bucket& of) {
  const auto &whole = *plan_.work->whole.layers[of.of_layer], &shard = *of.what;
  if (layer_ != of.of_layer) {
    all_.assign(static_cast<std::size_t>(whole.bucket()), 0);
    source_(of.of_layer, all_.data());
    layer_ = of.of_layer;
  }
  if (plan_.work->shards.empty())
    return all_;
  some_.resize(static_cast<std::size_t>(shard.bucket()));
  take_shard(whole, shard, all_.data(), some_.data());
  return some_;
}

} // namespace troupe
