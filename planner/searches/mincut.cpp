// SPDX-License-Identifier: BSD-3-Clause
// Baseline: the fewest bytes over all cuts, among parts whose times are nearly equal,
// as graph partitioners do. Karypis, Kumar, "A Fast and High Quality Multilevel Scheme
// for Partitioning Irregular Graphs", 1998.

#include "planner/layer_chain.hpp"
#include "planner/searches/baselines.hpp"

#include <algorithm>
#include <limits>

namespace troupe::planner {

namespace {

/// Sizes of parts that take at most `limit` seconds each; empty if there are none.
std::vector<int> cheapest_cuts(const layer_chain& chain, std::size_t parts,
                               double limit) {
  const auto layers = static_cast<std::size_t>(chain.layers());
  const double none = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> bytes(parts + 1,
                                         std::vector<double>(layers + 1, none));
  std::vector<std::vector<std::size_t>> begin(parts + 1,
                                              std::vector<std::size_t>(layers + 1));
  bytes[0][0] = 0;
  for (std::size_t p = 1; p <= parts; ++p)
    for (std::size_t l = p; l <= layers; ++l) {
      double seconds = 0;
      for (auto first = l; first-- > p - 1;) {
        seconds += chain.seconds[first];
        if (seconds > limit)
          break;
        const double more = first == 0 ? 0 : chain.cut_bytes[first - 1];
        if (bytes[p - 1][first] + more < bytes[p][l]) {
          bytes[p][l] = bytes[p - 1][first] + more;
          begin[p][l] = first;
        }
      }
    }
  std::vector<int> result;
  if (bytes[parts][layers] == none)
    return result;
  auto end = layers;
  for (auto p = parts; p > 0; --p) {
    result.push_back(static_cast<int>(end - begin[p][end]));
    end = begin[p][end];
  }
  std::ranges::reverse(result);
  return result;
}

} // namespace

std::vector<int> mincut_sizes(const layer_chain& chain) {
  const auto parts = static_cast<std::size_t>(std::min(chain.parts, chain.layers()));
  double total = 0;
  for (const double seconds : chain.seconds)
    total += seconds;
  // A part may be larger than the mean by 20%, or by more if no parts are so equal.
  double limit = 1.2 * total / static_cast<double>(parts);
  for (;; limit *= 1.2) {
    if (auto result = cheapest_cuts(chain, parts, limit); !result.empty())
      return result;
    if (limit > total)
      return cheapest_cuts(chain, parts, std::numeric_limits<double>::infinity());
  }
}

} // namespace troupe::planner
