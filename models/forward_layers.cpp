// SPDX-License-Identifier: BSD-3-Clause
#include "models/forward_layers.hpp"

#include <algorithm>

namespace troupe {

namespace {

struct forward_buffer_sizes {
  std::int64_t saved = 0, scratch = 0, between = 0;
};

forward_buffer_sizes sizes_of(const layer_list<float>& layers, std::int64_t samples,
                              int threads) {
  forward_buffer_sizes result;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto sizes = layers[i]->sizes(samples, threads);
    result.saved = std::max(result.saved, sizes.saved);
    result.scratch = std::max(result.scratch, sizes.scratch);
    if (i + 1 < layers.size())
      result.between = std::max(result.between, layers[i]->output_size(samples));
  }
  return result;
}

} // namespace

forward_buffers::forward_buffers(const layer_list<float>& layers, std::int64_t samples,
                                 int threads, memory_account& account) {
  const auto sizes = sizes_of(layers, samples, threads);
  saved_ = {sizes.saved, account};
  scratch_ = {sizes.scratch, account};
  for (auto& activations : between_)
    activations = {sizes.between, account};
}

std::int64_t forward_buffers::bytes(const layer_list<float>& layers,
                                    std::int64_t samples, int threads) {
  const auto sizes = sizes_of(layers, samples, threads);
  return (sizes.saved + sizes.scratch + 2 * sizes.between)
         * std::int64_t{sizeof(float)};
}

void forward_buffers::forward(const layer_list<float>& layers, const frame<float>& in,
                              std::span<const float* const> parameters,
                              std::span<float* const> caches) const {
  auto f = in;
  f.saved = saved_.data();
  f.scratch = scratch_.data();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    f.parameters = {parameters[i]};
    f.cache = caches.empty() ? nullptr : caches[i];
    f.y = i + 1 == layers.size() ? in.y : between_[i % 2].data();
    layers[i]->forward(f);
    f.x = f.y;
  }
}

} // namespace troupe
