// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/replica_exchange.hpp"
#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

/// Options of the mesh, as typed by the user.
struct typed_mesh {
  /// Ranks of a pipeline. The schedule determines how many stages each rank has.
  int stages = 4;
  /// True if `stages` was typed, or set from a schedule's file; false: the default.
  bool says_stages = false;
  std::string axes; ///< "data=2,pipe=4": pipe overrides `stages`.
  bool sequence_parallel = false;
  std::string exchange = "ring";
  std::string compress = "none";
  std::string recompute = "none";
  std::string split;
};

/// The number of ranks along each axis, the exchange, recomputation, and the cut of the
/// network into stages.
struct mesh_options {
  int data = 1;
  /// Ranks of a pipeline. The schedule determines how many stages each rank has.
  int stages = 4;
  int tensor = 1;
  int expert = 1; ///< Data replicas over which the experts of a layer are spread.
  bool sequence_parallel = false; ///< Always false if `tensor` is 1.
  recomputation recomputes = recomputation::none;
  /// Blocks or layers that are recomputed together; 0: a whole stage. Unused if
  /// `recomputes` is none.
  int recomputed_units = 0;
  replica_exchange exchange = {}; ///< The exchange between data replicas.
  /// Number of blocks or layers of each stage; empty: `unit_costs` decide.
  std::vector<int> split = {};
  /// Cost of each block or layer, in any unit; empty: the number of its operations.
  std::vector<double> unit_costs = {};
  bool measures_units = false; ///< True if `unit_costs` must still be measured.
  bool names_pipe = false;     ///< True if `stages` comes from pipe= of --mesh.

  int ranks() const { return data * stages * tensor; }
};

/// Reads "data=2,pipe=4,tensor=2,expert=2" into a mesh, then checks `stages` and the
/// number of ranks. An empty text changes no axis. Returns one sentence if the text or
/// the mesh is wrong, else an empty text.
/// \param to may be changed in part after a mistake
std::string read_axes(const std::string& text, mesh_options& to);

/// Parses and checks the typed options. The error is one sentence with the mistake and
/// the allowed values.
tl::expected<mesh_options, std::string> parse(const typed_mesh& typed);

} // namespace troupe
