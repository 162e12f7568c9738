// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/codecs/codec.hpp"
#include "messaging/collective_order.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// The ways in which data replicas keep one model: the catalog of exchanges, and
// functions that find an exchange by name.

namespace troupe {

/// The arrays that ZeRO partitions over the data replicas: each replica holds only its
/// share. Each level includes the levels before it (Rajbhandari et al., "ZeRO: Memory
/// Optimizations Toward Training Trillion Parameter Models", 2020, section 5).
enum class shared_out : std::uint8_t {
  nothing,
  optimizer_state, ///< ZeRO 1
  gradients,       ///< ZeRO 2
  parameters,      ///< ZeRO 3
};

/// The purpose of a collective in an exchange: summing gradients, or gathering
/// parameters.
enum class exchange_step : std::uint8_t { sum, gather };

/// The gradients that an update uses, and the actor that makes the update.
enum class update_by : std::uint8_t {
  all_replicas, ///< Gradients of all data replicas, summed: versions stay equal.
  servers, ///< Gradients of one replica: parameter servers apply gradients on arrival.
  /// Gradients of one replica: the replica updates memory that all replicas write
  /// without locks.
  itself,
};

/// The way in which data replicas keep one model: collectives that sum gradients, or
/// actors that apply the gradients of one replica at a time. An exchange also says
/// which arrays each replica holds.
struct replica_exchange {
  std::string name;
  std::string_view idea;
  shared_out shares = shared_out::nothing;
  /// The collective that sums gradients: an all_reduce, or a reduce_scatter. Unused
  /// unless `updates` is all_replicas.
  collective_order sum = {};
  /// The collective that gathers the parameters after an update of which each replica
  /// has made a share. Absent if each replica updates all parameters, or if `updates`
  /// is not all_replicas.
  std::optional<collective_order> gather = {};
  update_by updates = update_by::all_replicas;
  /// The number of updates that a replica may be ahead of the slowest replica. Servers
  /// delay the answer to a replica that is further ahead. Absent if there is no limit,
  /// or if `updates` is not servers.
  std::optional<int> staleness = {};

  /// Encoding of gradients in the messages of `sum`.
  const codec_entry* compression = &fp32_codec();

  /// Encoding of the messages of a step.
  const codec_entry& coding_of(exchange_step step) const {
    return step == exchange_step::sum ? *compression : fp32_codec();
  }

  /// Returns `sum` or `*gather`; valid as long as this object.
  /// \pre `updates` is all_replicas; for exchange_step::gather, `gather` is present
  const collective_order& order_of(exchange_step step) const {
    return step == exchange_step::sum ? sum : *gather;
  }
};

/// Every exchange that exists. An exchange with a staleness occurs once, with a
/// staleness of 1. Valid until the end of the program.
std::span<const replica_exchange> exchange_catalog();

/// Parses the name of an exchange, such as "ring" or "server:staleness=2". On error,
/// one sentence says that no exchange has this name, or that the staleness is wrong,
/// and which values are allowed.
tl::expected<replica_exchange, std::string> parse_exchange(const std::string& text);

/// Returns the exchange that parse_exchange() returns; absent where parse_exchange()
/// returns an error.
std::optional<replica_exchange> find_exchange(const std::string& text);

/// The names of all exchanges: "naive, tree, ring, ...". A name with a staleness ends
/// with "=K" in place of a number.
std::string exchange_names();

} // namespace troupe
