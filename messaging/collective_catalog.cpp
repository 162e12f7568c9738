#include "messaging/collective_catalog.hpp"

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

/// Texts in their order, each once.
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
  static const std::vector<collective_order> all{
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
  return all;
}

std::string_view name_of(collective_operation what) {
  constexpr std::string_view names[] = {"send",       "scatter",        "gather",
                                        "broadcast",  "reduce",         "all_reduce",
                                        "all_gather", "reduce_scatter", "all_to_all"};
  return names[static_cast<std::size_t>(what)];
}

const collective_order* find_collective(collective_operation what,
                                        std::string_view name) {
  const auto all = collective_catalog();
  const auto found = std::ranges::find_if(
    all, [&](const auto& order) { return order.what == what && order.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string operation_names() {
  return list_of([](const auto& order) { return name_of(order.what); });
}

std::string algorithm_names() {
  return list_of([](const auto& order) { return order.name; });
}

} // namespace troupe
