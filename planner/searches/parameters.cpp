// SPDX-License-Identifier: BSD-3-Clause
// Baseline: DeepSpeed's pipeline partition "parameters", which balances the parameters
// of the parts: the largest part is as small as can be.

#include "planner/layer_chain.hpp"
#include "planner/searches/baselines.hpp"

#include <algorithm>
#include <limits>

namespace troupe::planner {

std::vector<int> parameter_sizes(const layer_chain& chain) {
  const auto layers = static_cast<std::size_t>(chain.layers());
  const auto parts = static_cast<std::size_t>(std::min(chain.parts, chain.layers()));
  std::vector<double> sums(layers + 1);
  for (std::size_t l = 0; l < layers; ++l)
    sums[l + 1] = sums[l] + chain.parameters[l];
  // least[p][l]: the largest of p parts that have the first l layers
  std::vector<std::vector<double>> least(
    parts + 1,
    std::vector<double>(layers + 1, std::numeric_limits<double>::infinity()));
  std::vector<std::vector<std::size_t>> begin(parts + 1,
                                              std::vector<std::size_t>(layers + 1));
  least[0][0] = 0;
  for (std::size_t p = 1; p <= parts; ++p)
    for (std::size_t l = p; l <= layers; ++l)
      for (std::size_t first = p - 1; first < l; ++first) {
        const double largest = std::max(least[p - 1][first], sums[l] - sums[first]);
        if (largest < least[p][l]) {
          least[p][l] = largest;
          begin[p][l] = first;
        }
      }
  std::vector<int> result;
  auto end = layers;
  for (auto p = parts; p > 0; --p) {
    result.push_back(static_cast<int>(end - begin[p][end]));
    end = begin[p][end];
  }
  std::ranges::reverse(result);
  return result;
}

} // namespace troupe::planner
