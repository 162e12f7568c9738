// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/replica_exchange.hpp"
#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Options of the mesh, as typed by the user.
struct typed_mesh {
  /// Ranks of a pipeline. The schedule determines how many stages each rank has.
  int stages = 4;
  bool says_stages = false; ///< `stages` was typed; false: the default applies.
  std::string axes;         ///< "data=2,pipe=4": pipe overrides `stages`.
  bool sequence_parallel = false;
  std::string exchange = "ring";
  std::string recompute = "none";
  std::string split;
};

/// The number of ranks along each axis, and the cut of the network into stages.
struct mesh_options {
  int data = 1;
  /// Ranks of a pipeline. The schedule determines how many stages each rank has.
  int stages = 4;
  int tensor = 1;
  int expert = 1;
  bool sequence_parallel = false;
  recomputation recomputes = recomputation::none;
  int recomputed_units = 0;       ///< Blocks or layers recomputed together; 0: a stage.
  replica_exchange exchange = {}; ///< The exchange between data replicas.
  std::vector<int> split = {};    ///< Blocks or layers of each stage; empty: by cost.
  /// Cost of each block or layer, in any unit; empty: the number of its operations.
  std::vector<double> unit_costs = {};
  bool measures_units = false; ///< True if `unit_costs` must still be measured.
  bool names_pipe = false;     ///< `stages` comes from pipe= of --mesh.

  int ranks() const { return data * stages * tensor; }
};

/// Reads "data=2,pipe=4,tensor=2,expert=2" into a mesh. Returns one sentence if the
/// text is wrong, else an empty text.
std::string read_axes(const std::string& text, mesh_options& to);

/// Adds the options of the mesh and of recomputation.
/// \param names_exchange whether the program has an option for the exchange
void add_mesh(option_list& to, typed_mesh& typed, bool names_exchange);
void add_split(option_list& to, typed_mesh& typed);

/// Adds --stages alone, for programs with one stage on each rank.
void add_stages(option_list& to, typed_mesh& typed);

/// Parses and checks the typed options. The error is one sentence with the mistake and
/// the allowed values.
tl::expected<mesh_options, std::string> parse(const typed_mesh& typed);

} // namespace troupe
