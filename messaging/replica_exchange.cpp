// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/replica_exchange.hpp"

#include "messaging/collective_catalog.hpp"

#include <array>
#include <charconv>

namespace troupe {

std::span<const replica_exchange> exchange_catalog() {
  static const std::array catalog{
    replica_exchange{.name = "naive",
                     .idea = "all_reduce: each replica sends its gradients to all",
                     .sum = naive_all_reduce()},
    replica_exchange{.name = "tree",
                     .idea = "all_reduce up a tree and down again",
                     .sum = tree_all_reduce()},
    replica_exchange{.name = "ring",
                     .idea = "all_reduce around a ring, chunk by chunk",
                     .sum = ring_all_reduce()},
    replica_exchange{.name = "halving",
                     .idea = "all_reduce by recursive halving and doubling",
                     .sum = halving_all_reduce()},
    replica_exchange{.name = "server",
                     .idea = "each replica is the parameter server of a share, which "
                             "receives all gradients and sends the new parameters",
                     .shares = shared_out::optimizer_state,
                     .sum = naive_reduce_scatter(),
                     .gather = naive_all_gather()},
    replica_exchange{.name = "zero1",
                     .idea = "each replica updates a share of the parameters, and "
                             "holds only the optimizer state of that share",
                     .shares = shared_out::optimizer_state,
                     .sum = ring_reduce_scatter(),
                     .gather = ring_all_gather()},
    replica_exchange{.name = "zero2",
                     .idea = "zero1, and each replica keeps only its share of the "
                             "gradients",
                     .shares = shared_out::gradients,
                     .sum = ring_reduce_scatter(),
                     .gather = ring_all_gather()},
    replica_exchange{.name = "zero3",
                     .idea =
                       "zero2, and each replica keeps only its share of the "
                       "parameters; a layer's parameters are gathered just before use",
                     .shares = shared_out::parameters,
                     .sum = ring_reduce_scatter(),
                     .gather = ring_all_gather()},
    replica_exchange{.name = "server:async",
                     .idea = "each server of a share applies every replica's gradients "
                             "on arrival and answers with its newest parameters",
                     .updates = update_by::servers},
    replica_exchange{.name = "server:staleness=1",
                     .idea =
                       "server:async, but a replica waits while more than 1 update "
                       "ahead of the slowest replica; =2 allows 2 updates, and so on",
                     .updates = update_by::servers,
                     .staleness = 1},
    replica_exchange{.name = "hogwild",
                     .idea = "all replicas update one copy of the parameters in the "
                             "memory of the process, without locks",
                     .updates = update_by::itself},
  };
  return catalog;
}

tl::expected<replica_exchange, std::string> parse_exchange(const std::string& text) {
  const auto equals = text.find('=');
  for (const auto& known : exchange_catalog()) {
    if (known.name == text)
      return known;
    if (!known.staleness || equals == std::string::npos
        || known.name.substr(0, known.name.find('=')) != text.substr(0, equals))
      continue;
    int bound = -1;
    const auto* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, bound);
    if (error != std::errc{} || stop != end || bound < 0)
      return tl::unexpected{text + ": write a whole number from 0 to 2,147,483,647"};
    auto result = known;
    result.name = text.substr(0, equals + 1) + std::to_string(bound);
    result.staleness = bound;
    return result;
  }
  return tl::unexpected{"there is no exchange '" + text + "'; there are "
                        + exchange_names()};
}

std::optional<replica_exchange> find_exchange(const std::string& text) {
  const auto parsed = parse_exchange(text);
  return parsed ? std::optional{*parsed} : std::nullopt;
}

std::string exchange_names() {
  std::string result;
  for (const auto& e : exchange_catalog())
    result += (result.empty() ? "" : ", ")
              + (e.staleness ? e.name.substr(0, e.name.find('=')) + "=K" : e.name);
  return result;
}

} // namespace troupe
