// SPDX-License-Identifier: BSD-3-Clause
// Baseline: as many layers in each part, the first parts one more.

#include "planner/layer_chain.hpp"
#include "planner/searches/baselines.hpp"

#include <algorithm>

namespace troupe::planner {

std::vector<int> uniform_sizes(const layer_chain& chain) {
  const int parts = std::min(chain.parts, chain.layers());
  std::vector<int> result;
  for (int p = 0; p < parts; ++p)
    result.push_back(chain.layers() / parts + (p < chain.layers() % parts ? 1 : 0));
  return result;
}

} // namespace troupe::planner
