// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/collective_catalog.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace troupe {

namespace {

/// The texts of all orders, in the catalog's order, each once.
template <class Text>
std::string list_of(Text text) {
  std::vector<std::string_view> seen;
  std::string result;
  for (const auto& order : collective_catalog()) {
    const std::string_view name = text(order);
    if (std::ranges::find(seen, name) != seen.end())
      continue;
    seen.push_back(name);
    result += (result.empty() ? "" : ", ") + std::string{name};
  }
  return result;
}

} // namespace

std::span<const collective_order> collective_catalog() {
  static const std::vector<collective_order> catalog{
    direct_send(),         tree_scatter(),
    tree_gather(),         tree_broadcast(),
    tree_reduce(),         naive_all_reduce(),
    tree_all_reduce(),     ring_all_reduce(),
    halving_all_reduce(),  doubling_all_reduce(),
    naive_all_gather(),    ring_all_gather(),
    halving_all_gather(),  naive_reduce_scatter(),
    ring_reduce_scatter(), halving_reduce_scatter(),
    pairwise_all_to_all(),
  };
  return catalog;
}

std::string_view name_of(collective_operation operation) {
  switch (operation) {
  case collective_operation::send:
    return "send";
  case collective_operation::scatter:
    return "scatter";
  case collective_operation::gather:
    return "gather";
  case collective_operation::broadcast:
    return "broadcast";
  case collective_operation::reduce:
    return "reduce";
  case collective_operation::all_reduce:
    return "all_reduce";
  case collective_operation::all_gather:
    return "all_gather";
  case collective_operation::reduce_scatter:
    return "reduce_scatter";
  case collective_operation::all_to_all:
    return "all_to_all";
  }
  throw std::logic_error{"a collective is of an unknown operation"};
}

const collective_order* find_collective(collective_operation operation,
                                        std::string_view name) {
  const auto orders = collective_catalog();
  const auto match = std::ranges::find_if(orders, [&](const auto& order) {
    return order.operation == operation && order.name == name;
  });
  return match == orders.end() ? nullptr : &*match;
}

std::string operation_names() {
  return list_of([](const auto& order) { return name_of(order.operation); });
}

std::string algorithm_names() {
  return list_of([](const auto& order) { return order.name; });
}

} // namespace troupe
