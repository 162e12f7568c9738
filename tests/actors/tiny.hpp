// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/perform.hpp"
#include "tests/plan/tiny_plans.hpp"

#include <catch2/catch_tostring.hpp>

#include <vector>

namespace tiny {

/// The parameters that the last evaluation of a run received, one array for each layer.
inline std::vector<std::vector<float>> last_evaluated(run_plan& plan,
                                                      run_result& result) {
  std::vector<std::vector<float>> last;
  plan.copies.evaluate_every = 1;
  const auto see = [&](int batches, const std::vector<const float*>& parameters) {
    if (batches < plan.dims.steps)
      return;
    for (std::size_t l = 0; l < parameters.size(); ++l)
      last.emplace_back(parameters[l],
                        parameters[l] + plan.work->whole.layers[l]->bucket());
  };
  result = perform(plan, {.evaluate = see});
  return last;
}

} // namespace tiny
