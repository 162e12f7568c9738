// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/own_parts.hpp"

#include "kernels/checksum.hpp"
#include "models/data_identity.hpp"
#include "models/short_text.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace troupe {

namespace {

std::string facts_of(const own_parts& own) {
  std::string result;
  for (const auto& layer : own.network->layers) {
    const auto made = layer->as_layer(layer);
    result += std::to_string(made->input()) + " " + std::to_string(made->output()) + " "
              + exact_text(made->operations()) + ":";
    for (const auto& p : made->parameters()) {
      result += p.name + " " + std::to_string(static_cast<int>(p.begins)) + " "
                + exact_text(p.scale);
      for (const auto dim : p.dims)
        result += " " + std::to_string(dim);
      result += ",";
    }
    result += ";";
  }
  return result + std::to_string(own.network->predictions)
         + (own.network->reads_tokens ? " tokens" : " values");
}

} // namespace

std::string text_of(const own_parts& own) {
  std::string result;
  if (own.network) {
    running_checksum sum;
    const auto facts = facts_of(own);
    sum.add(std::as_bytes(std::span{facts}));
    for (const auto& [name, values] : own.values) {
      sum.add(std::as_bytes(std::span{name}));
      sum.add(std::as_bytes(std::span{values}));
    }
    const auto layers = own.network->layers.size();
    result = "a network of " + std::to_string(layers)
             + (layers == 1 ? " layer" : " layers") + ", XXH3 "
             + text_of_sum(sum.value());
  }
  if (own.data) {
    const auto identity = own.data->identity();
    result += (result.empty() ? "" : ", and ") + own.data->description()
              + (identity ? ", XXH3 " + text_of_sum(identity->checksum) : "");
  }
  return result;
}

std::string own_error(const own_parts& own, const mesh_options& mesh,
                      const run_options& run) {
  if (!own.network)
    return {};
  if (mesh.tensor > 1 || mesh.expert > 1)
    return "tensor= and expert= divide built-in models: leave them out with a network "
           "of your own";
  if (std::ranges::any_of(run.processors, &processor::is_gpu))
    return "GPUs compute built-in models alone: say --device cpu with a network of "
           "your own";
  if (run.products != precision::fp32)
    return "--precision bf16 is of built-in models: leave it out with a network of "
           "your own";
  return {};
}

std::string values_error(const own_parts& own, const network<float>& whole) {
  const auto all = whole.parameters();
  for (const auto& [name, values] : own.values) {
    const auto found =
      std::ranges::find(all, name, [](const auto* p) { return p->name; });
    if (found == all.end())
      return "the network has no parameter '" + name + "' of the given initial values";
    if (std::ssize(values) != (*found)->values())
      return "parameter '" + name + "' has " + std::to_string((*found)->values())
             + " values, and " + std::to_string(values.size()) + " are given";
  }
  return {};
}

weight_source with_values(weight_source weights, const own_parts& own,
                          const network<float>& whole) {
  return [weights = std::move(weights), values = own.values,
          layers = whole.layers](std::size_t layer, float* bucket) {
    weights(layer, bucket);
    for (const auto& p : layers[layer]->parameters())
      if (const auto given = values.find(p.name); given != values.end())
        std::ranges::copy(given->second, bucket + p.offset);
  };
}

} // namespace troupe
