// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective_order.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// What data replicas share out between them instead of each holding all of it: each
/// level also shares out what those before it do (Rajbhandari et al., "ZeRO: Memory
/// Optimizations Toward Training Trillion Parameter Models", 2020, section 5).
enum class shared_out : std::uint8_t {
  nothing,
  optimizer_state, ///< ZeRO 1
  gradients,       ///< ZeRO 2
  parameters,      ///< ZeRO 3
};

/// What a collective of an exchange is for: to sum gradients, or to gather parameters.
enum class exchange_step : std::uint8_t { sum, gather };

/// Whose gradients an update is of, and who makes it.
enum class update_by : std::uint8_t {
  all,     ///< All data replicas' gradients, summed: versions stay equal.
  servers, ///< One replica's: parameter servers apply them as they come.
  itself,  ///< One replica's: it applies them in memory that all write without locks.
};

/// How data replicas keep one model: by which collectives they sum their gradients and
/// what each of them holds, or who applies them one by one.
struct replica_exchange {
  std::string name;
  std::string_view idea;
  shared_out shares = shared_out::nothing;
  /// The collective that sums gradients, where updates are of all replicas: an
  /// all_reduce, or a reduce_scatter.
  collective_order sum = {};
  /// The collective that gathers the parameters that each replica has updated. Absent
  /// if each replica updates them all.
  std::optional<collective_order> gather = {};
  update_by updates = update_by::all;
  /// How many updates a replica may be ahead of the slowest when servers answer it;
  /// absent: any number.
  std::optional<int> staleness = {};

  const collective_order& order_of(exchange_step step) const {
    return step == exchange_step::sum ? sum : *gather;
  }
};

/// Every exchange there is.
std::span<const replica_exchange> exchange_catalog();

/// The exchange that a text names, as "ring" or "server:staleness=2". On error says
/// what was wrong and what is allowed.
tl::expected<replica_exchange, std::string> parse_exchange(const std::string& text);

/// The same; absent if there is none.
std::optional<replica_exchange> find_exchange(const std::string& text);

/// "naive, tree, ring, ..."
std::string exchange_names();

} // namespace troupe
