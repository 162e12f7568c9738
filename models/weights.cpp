// SPDX-License-Identifier: BSD-3-Clause
#include "models/weights.hpp"

#include "models/hugging_face.hpp"
#include "models/value_checks.hpp"

#include <span>

namespace troupe {

weight_source initial_weights(const network<float>& whole, std::uint64_t seed) {
  return [layers = whole.layers, seed](std::size_t layer, float* bucket) {
    for (const auto& p : layers[layer]->parameters())
      initialise(p, seed, bucket + p.offset);
  };
}

std::string not_finite(const network<float>& whole,
                       const std::vector<const float*>& buckets) {
  for (std::size_t layer = 0; layer < whole.layers.size(); ++layer)
    for (const auto& p : whole.layers[layer]->parameters())
      if (auto which = not_finite(
            p.name, 0,
            {buckets[layer] + p.offset, static_cast<std::size_t>(p.values())});
          !which.empty())
        return which;
  return {};
}

std::string save_weights(const std::filesystem::path& path, const network<float>& whole,
                         const std::vector<const float*>& buckets,
                         const file_metadata& metadata, precision stored) {
  if (const auto which = not_finite(whole, buckets); !which.empty())
    return "cannot write " + path.string() + ", as weights are not finite: " + which
           + "; a lower learning rate or clipping may help";
  std::vector<tensor_to_store> tensors;
  for (std::size_t layer = 0; layer < whole.layers.size(); ++layer)
    for (const auto& p : whole.layers[layer]->parameters()) {
      if (!p.tied_to.empty())
        continue;
      const std::span values{buckets[layer] + p.offset,
                             static_cast<std::size_t>(p.values())};
      const auto large = stored == precision::bf16 ? too_large(values) : std::string{};
      if (!large.empty())
        return "cannot write " + path.string() + ": " + p.name + large
               + ", more than bf16 holds: save weights as fp32";
      tensors.push_back({p.name, p.dims, values.data(), stored});
    }
  if (const auto tied = whole.tied()) {
    const auto copy = [&](const tied_matrix::location& copy_location) {
      return std::span{buckets[copy_location.layer] + copy_location.offset,
                       static_cast<std::size_t>(tied->values)};
    };
    if (const auto which = first_apart(copy(tied->head), copy(tied->embedding)))
      return "cannot write " + path.string()
             + ": the head and the embedding first differ at value "
             + std::to_string(*which) + ", but are one matrix by --tied";
  }
  // The config is written just before the weights take their place. At no moment does
  // an older config make other tools lose the head, and no new config lies beside older
  // weights.
  std::string config_error;
  auto file_error = write_safetensors(
    path, tensors, metadata, [&] { config_error = write_config(path, whole.options); });
  return file_error.empty() ? config_error : file_error;
}

} // namespace troupe
