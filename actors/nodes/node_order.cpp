// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/node_order.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>

namespace troupe {

namespace {

const node_identity& identity_of(const std::vector<node_identity>& nodes, int number) {
  return nodes[static_cast<std::size_t>(number) - 1];
}

} // namespace

node_identity new_identity() {
  std::random_device dice;
  node_identity result{};
  for (auto& word : result)
    word = (std::uint64_t{dice()} << 32U) | dice();
  return result;
}

std::vector<int> order_of(const std::vector<node_identity>& nodes) {
  std::vector<int> result(nodes.size());
  std::iota(result.begin(), result.end(), 1);
  std::ranges::sort(result, {}, [&](int number) { return identity_of(nodes, number); });
  return result;
}

std::optional<std::pair<int, int>>
twins_among(const std::vector<node_identity>& nodes) {
  const auto order = order_of(nodes);
  const auto twin = std::ranges::adjacent_find(
    order, {}, [&](int number) { return identity_of(nodes, number); });
  if (twin == order.end())
    return {};
  return std::minmax({*twin, *std::next(twin)});
}

} // namespace troupe
