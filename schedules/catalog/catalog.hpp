// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The catalog of schedules: a function that makes each schedule, and a lookup by name.

namespace troupe {

schedule naive();
schedule gpipe();
schedule one_f_one_b();

/// Interleaved 1F1B: a microbatch passes the ranks v times.
/// \param v number of stages of a rank, at least 1
schedule interleaved(int v = 2);
/// Breadth-first: all microbatches pass one stage of a rank before the rank's next
/// stage.
/// \param v number of stages of a rank, at least 1
schedule looped_bfs(int v = 2);

schedule zb_h1();
schedule zb_h2();
schedule zb_v();

/// Time that a forward, an input gradient, a weight gradient and an update of a stage
/// take, in any unit.
struct split_costs {
  std::int64_t f = 1, i = 1, w = 1, u = 0;
};

/// The fastest program that a search finds, with split backwards and limited memory.
/// The catalog's flush schedules with one stage per rank are candidates, too, unless a
/// rank would hold more than `most_held` allows.
/// \param costs one entry per stage, or one entry for all stages; a time of F, I or W
/// below 1 counts as 1
/// \param most_held most microbatches that a rank holds; 0: the number of stages
/// \param latency time of a message between ranks, in the unit of the costs
schedule zb_auto(std::vector<split_costs> costs = {{}}, int most_held = 0,
                 std::int64_t latency = 0);
schedule v_half();
schedule v_min();

/// Stages along the ranks and back, in waves.
/// \param waves number of passes along the ranks and back, at least 1; in each wave a
/// rank has two stages
schedule hanayo(int waves = 1);

/// Variants of Chimera.
struct chimera_options {
  /// True if gradients of directions are added bucket by bucket, while backwards still
  /// run. False: gradients are added after all backwards of a rank.
  bool eager = true;
  int pairs = 1; ///< Number of pairs of opposite pipelines, at least 1; f in the paper.
  /// Two microbatches share the slot of a forward, so that forwards and backwards have
  /// slots of one length. Needs `pairs` to be 1.
  bool forward_doubling = false;
};

schedule chimera(const chimera_options& which = {});
schedule dualpipe();
schedule dualpipev();

/// 1F1B without flush: a version is stashed for each microbatch in flight.
/// \param update_every number of microbatches that an update of a stage covers, at
/// least 1
/// \param vertical_sync whether all stages read the version that stage 0 read
schedule pipedream(int update_every = 1, bool vertical_sync = false);

schedule two_bw();

/// A local rule: backwards first, on the newest weights.
/// \param max_active_keys most microbatches between the start of F and the end of B at
/// stage 0
/// \param min_update_frequency number of gradients that a stage sums before an update
schedule ampnet(int max_active_keys = 4, int min_update_frequency = 8);

/// A parameter that a user may set by name. `off` and `false` mean 0; `on` and `true`
/// mean 1.
struct schedule_parameter {
  std::string_view name;
  int initial; ///< The value if the user sets none; from `least` to `most`.
  int least;
  int most;
  std::string_view meaning;
};

/// An entry of the catalog: a schedule that a user selects by name.
struct catalog_entry {
  std::string_view name;
  std::string_view summary;
  std::vector<schedule_parameter> parameters;
  /// Makes the schedule from one value for each parameter, in order.
  /// \pre each value is from `least` to `most` of the parameter
  schedule (*make)(std::span<const int> values);
};

/// All entries of the catalog; valid until the end of the program.
std::span<const catalog_entry> catalog();

/// The names in the catalog: "naive, gpipe, ...".
std::string catalog_names();

/// Makes the schedule called `name`. Parameters that `values` leaves out have their
/// initial values. On error, one sentence names the unknown schedule, the unknown
/// parameter or the wrong value, and says which names or values are allowed.
tl::expected<schedule, std::string>
find_schedule(std::string_view name,
              const std::map<std::string, std::string>& values = {});

} // namespace troupe
