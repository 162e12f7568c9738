// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/own_parts.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

std::string own_error(const own_parts& own, const mesh_options& mesh,
                      const run_options& run, const node_options& nodes) {
  if (!own.network && !own.data)
    return {};
  if (!nodes.nodes.empty())
    return "nodes have neither a network nor data of this process: leave --nodes out";
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
