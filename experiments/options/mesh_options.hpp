// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/replica_exchange.hpp"
#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Options of the mesh, as a user types them.
struct typed_mesh {
  int stages = 4; ///< Ranks of a pipeline, each with as many stages as its schedule
                  ///< says.
  bool says_stages = false; ///< They are typed, and not the usual number.
  std::string axes;         ///< "data=2,pipe=4": pipe goes before `stages`.
  bool sequence_parallel = false;
  std::string exchange = "ring";
  std::string recompute = "none";
  std::string split;
};

/// Ranks along each axis, and how the network is cut.
struct mesh_options {
  int data = 1;
  int stages = 4; ///< Ranks of a pipeline, each with as many stages as its schedule
                  ///< says.
  int tensor = 1;
  int expert = 1;
  bool sequence_parallel = false;
  recomputation recomputes = recomputation::none;
  int recomputed_units = 0;       ///< Blocks or layers at once; 0: all of a stage.
  replica_exchange exchange = {}; ///< Between data replicas.
  std::vector<int> split = {};    ///< Blocks or layers of each stage; empty: by cost.
  std::vector<double> unit_costs = {}; ///< Of blocks or layers; empty: operations.
  bool measures_units = false;         ///< They are yet to be measured.
  bool names_pipe = false;             ///< `stages` is the pipe of --mesh.

  int ranks() const { return data * stages * tensor; }
};

/// Reads "data=2,pipe=4,tensor=2,expert=2" into a mesh. Returns what is wrong, if
/// anything.
std::string read_axes(const std::string& text, mesh_options& to);

/// \param names_exchange whether there is an option for that
void add_mesh(option_list& to, typed_mesh& place, bool names_exchange);
void add_split(option_list& to, typed_mesh& place);

/// Only --stages, of one each rank.
void add_stages(option_list& to, typed_mesh& place);

/// On error says what is wrong, and what is allowed.
tl::expected<mesh_options, std::string> parse(const typed_mesh& typed);

} // namespace troupe
