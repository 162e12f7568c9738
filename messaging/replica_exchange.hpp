#pragma once

#include "messaging/collective_order.hpp"

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

/// How data replicas keep one model: by which collectives they sum their gradients, and
/// what each of them holds.
struct replica_exchange {
  std::string_view name;
  std::string_view idea;
  shared_out shares = shared_out::nothing;
  collective_order sum; ///< Of gradients: an all_reduce, or a reduce_scatter.
  /// Of the parameters that each replica has updated; absent if each updates them all.
  std::optional<collective_order> gather = {};

  const collective_order& order_of(exchange_step step) const {
    return step == exchange_step::sum ? sum : *gather;
  }
};

/// Every exchange there is.
std::span<const replica_exchange> exchange_catalog();

/// Null if there is none of this name.
const replica_exchange* find_exchange(std::string_view name);

/// "naive, tree, ring, ..."
std::string exchange_names();

} // namespace troupe
