#include "messaging/replica_exchange.hpp"

#include "messaging/collective_catalog.hpp"

#include <algorithm>
#include <array>

namespace troupe {

std::span<const replica_exchange> exchange_catalog() {
  static const std::array all{
    replica_exchange{.name = "naive",
                     .idea = "an all_reduce in which each sends its gradients to all",
                     .sum = naive_all_reduce()},
    replica_exchange{.name = "tree",
                     .idea = "an all_reduce up a tree and down again",
                     .sum = tree_all_reduce()},
    replica_exchange{.name = "ring",
                     .idea = "an all_reduce around a ring, chunk by chunk",
                     .sum = ring_all_reduce()},
    replica_exchange{.name = "halving",
                     .idea = "an all_reduce by recursive halving and doubling",
                     .sum = halving_all_reduce()},
    replica_exchange{.name = "server",
                     .idea = "each is the parameter server of a share: it gets "
                             "everyone's gradients of it and answers everyone's pull",
                     .shares = shared_out::optimizer_state,
                     .sum = naive_reduce_scatter(),
                     .gather = naive_all_gather()},
    replica_exchange{
      .name = "zero1",
      .idea = "each updates a share of the parameters, whose optimizer state it "
              "alone holds",
      .shares = shared_out::optimizer_state,
      .sum = ring_reduce_scatter(),
      .gather = ring_all_gather()},
    replica_exchange{.name = "zero2",
                     .idea = "so, and of the gradients too each holds its share alone",
                     .shares = shared_out::gradients,
                     .sum = ring_reduce_scatter(),
                     .gather = ring_all_gather()},
    replica_exchange{
      .name = "zero3",
      .idea =
        "so, and of the parameters too: those of a layer are gathered just before "
        "their use",
      .shares = shared_out::parameters,
      .sum = ring_reduce_scatter(),
      .gather = ring_all_gather()},
  };
  return all;
}

const replica_exchange* find_exchange(std::string_view name) {
  const auto all = exchange_catalog();
  const auto found = std::ranges::find(all, name, &replica_exchange::name);
  return found == all.end() ? nullptr : &*found;
}

std::string exchange_names() {
  std::string result;
  for (const auto& e : exchange_catalog())
    result += (result.empty() ? "" : ", ") + std::string{e.name};
  return result;
}

} // namespace troupe
