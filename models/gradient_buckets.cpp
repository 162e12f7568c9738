// SPDX-License-Identifier: BSD-3-Clause
#include "models/gradient_buckets.hpp"

#include "kernels/space_allocator.hpp"

#include <deque>
#include <utility>

namespace troupe {

namespace {

vector_in<float> copied_part(const layer<float>& whole, const layer<float>& part,
                             const float* from, memory_space& to) {
  vector_in<float> result(static_cast<std::size_t>(part.bucket()),
                          space_allocator<float>{to});
  extract_shard(whole, part, from, result.data());
  return result;
}

} // namespace

gradient_buckets::gradient_buckets(layer_list<float> layers,
                                   std::vector<std::vector<gradient_bucket>> made_of)
  : layers_(std::move(layers)), made_of_(std::move(made_of)) {
  // nop
}

bool gradient_buckets::is_whole(std::size_t layer) const {
  return made_of_[layer].size() == 1;
}

void gradient_buckets::sum(std::size_t layer, const std::vector<float*>& arrays,
                           const sum_function& reduction) const {
  const auto& whole = *layers_[layer];
  if (is_whole(layer))
    return reduction(arrays, whole.bucket());
  for (const auto& [part, measured] : made_of_[layer]) {
    std::vector<vector_in<float>> parts;
    for (const auto* const array : arrays)
      parts.push_back(copied_part(whole, *part, array, host_memory()));
    reduction(writable(parts), part->bucket());
    insert_shard(whole, *part, parts.front().data(), arrays.front());
  }
}

std::vector<double>
gradient_buckets::squares(const std::vector<const float*>& gradients,
                          stream& compute_stream) const {
  std::vector<gradient_bucket> buckets;
  std::vector<const float*> values;
  std::deque<vector_in<float>> copies;
  for (std::size_t l = 0; l < layers_.size(); ++l)
    for (const auto& part : made_of_[l]) {
      if (!is_whole(l))
        copies.push_back(copied_part(*layers_[l], *part.layout, gradients[l],
                                     compute_stream.memory()));
      buckets.push_back(part);
      values.push_back(is_whole(l) ? gradients[l] : copies.back().data());
    }
  std::vector<double> result;
  for (std::size_t i = 0; i < buckets.front().measured.size(); ++i)
    for (std::size_t b = 0; b < buckets.size(); ++b)
      if (const auto share = buckets[b].measured[i])
        for (const double sum : squares_of(parts_of({buckets[b].layout}, {*share}),
                                           {values[b]}, compute_stream))
          result.push_back(sum);
  return result;
}

} // namespace troupe
