// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/run_plan.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Pieces of parameters and optimizer state that stages save in a checkpoint or keep for
// recovery.

namespace troupe {

/// An array of the whole network in a checkpoint: one version of the parameters, or one
/// state array of the optimizer.
struct saved_array {
  enum class kind : std::uint8_t { parameters, state };

  kind type = kind::parameters;
  int number = 0; ///< Age of a version (0: the newest), or index of a state array.
  std::string state = {}; ///< Name of a state array.

  auto operator<=>(const saved_array&) const = default;
};

/// Name of an array: "parameters" for the newest version, "parameters-1" for the
/// version before the newest, "mean" for a state array of that name.
std::string name_of(const saved_array& array);

/// Values of one parameter that one stage saves: values [begin, end) of the stage's
/// part of the parameter, in row-major order. The piece is the whole part, or a data
/// replica's share of the part.
struct saved_piece {
  std::size_t layer;  ///< Index of the layer in the network.
  std::size_t bucket; ///< Index of the bucket in the stage.
  parameter part;     ///< The stage's part of the parameter, sharded as the layer is.
  std::int64_t begin;
  std::int64_t end;

  std::int64_t values() const { return end - begin; }
  bool is_whole_part() const { return values() == part.values(); }
};

/// The data replicas that save a value if several hold the value: the first of the
/// holders, or every holder.
enum class savers : std::uint8_t { first_holder, every_holder };

/// Pieces that a stage saves of every version (`parameters`) or state array
/// (`optimizer_state`). With `savers::first_holder`, the stages of all data replicas
/// together save every value once. With `savers::every_holder`, each data replica saves
/// each value that the replica holds. In both cases only direction 0 saves, and only
/// tensor shard 0 saves parameters that all shards hold whole. A tied matrix is saved
/// by the embedding's layer.
/// \pre plan.work
std::vector<saved_piece> pieces_of(const run_plan& plan, position where,
                                   shared_out tensors,
                                   savers saver = savers::first_holder);

/// Number of values in all pieces together.
std::int64_t values_of(const std::vector<saved_piece>& pieces);

/// Calls `run(offset in the whole parameter, offset in the piece, count)` for each run
/// of values. A run is contiguous both in the parameter and in the piece.
void for_each_run(
  const saved_piece& piece,
  const std::function<void(std::int64_t whole_offset, std::int64_t piece_offset,
                           std::int64_t count)>& run);

} // namespace troupe
