// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective.hpp"
#include "messaging/position.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

// The two ends of a tied matrix: which stages have the ends, and which values the
// optimizer shards of the ends exchange.

namespace troupe {

struct run_plan;

/// One end of a tied matrix: the embedding, or the head. Ranges [first, last) below are
/// indexes of the matrix's values; of a tensor shard, indexes within the shard's part
/// of the matrix.
enum class tied_end : std::uint8_t { embedding, head };

constexpr tied_end opposite_of(tied_end end) {
  return end == tied_end::head ? tied_end::embedding : tied_end::head;
}

/// Values of a tied matrix that an optimizer shard exchanges with one shard of the
/// other end.
struct tied_exchange {
  position peer; ///< The shard at the other end.
  std::int64_t first;
  std::int64_t last; ///< One past the last value.
};

/// An optimizer shard's values of one end of a tied matrix.
struct tied_values {
  tied_end end;
  std::size_t bucket; ///< Index of the bucket in the stage.
  std::int64_t first; ///< Index of the shard's first value.
  std::int64_t last;  ///< One past the shard's last value.
  /// Offset of `first` in the array of the bucket's gradients: the whole bucket, or the
  /// shard's share of the bucket (extent_of()).
  std::int64_t offset_of_first;
  std::vector<tied_exchange> exchanges;
};

/// True if a stage has an end of a tied matrix; false in a simulation.
bool has_tied_end(const run_plan& plan, position where);

/// The ends that a stage has, with this optimizer shard's values.
/// \pre has_tied_end(plan, where)
std::vector<tied_values> tied_values_of(const run_plan& plan, position where);

/// The optimizer shards with which a shard exchanges gradients, each once. A shard with
/// both ends also exchanges with itself. With ZeRO only shards with common values of
/// the matrix exchange: the result may lack the shard itself, or be empty.
/// \pre has_tied_end(plan, where)
std::vector<position> tied_peers_of(const run_plan& plan, position where);

/// The number and size of the buffers for the messages of a tied matrix that an
/// optimizer shard sends.
/// \pre has_tied_end(plan, where)
payload_bound tied_copies(const run_plan& plan, position where);

} // namespace troupe
