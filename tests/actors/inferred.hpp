// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_plan.hpp"

#include <vector>

namespace tiny {

using namespace troupe;

/// A network with first weights, cut into stages.
inline inference_plan inference_of(const model_options& model, int stages,
                                   int threads = 2) {
  auto whole = *make_network<float>(model);
  auto first_layers = *cut(whole, stages, {});
  auto weights = initial_weights(whole, 3);
  return {.whole = std::move(whole),
          .first_layers = std::move(first_layers),
          .weights = std::move(weights),
          .threads = threads};
}

/// The weights of such a plan, one bucket for each layer.
inline std::vector<std::vector<float>> buckets_of(const inference_plan& plan) {
  std::vector<std::vector<float>> result;
  for (std::size_t l = 0; l < plan.whole.layers.size(); ++l) {
    result.emplace_back(static_cast<std::size_t>(plan.whole.layers[l]->bucket()));
    plan.weights(l, result.back().data());
  }
  return result;
}

} // namespace tiny
