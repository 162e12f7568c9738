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

namespace troupe {

schedule naive();
schedule gpipe();
schedule one_f_one_b();

/// \param v stages of a rank, at least 1
schedule interleaved(int v = 2);
schedule looped_bfs(int v = 2);

schedule zb_h1();
schedule zb_h2();
schedule zb_v();

/// What a forward, an input gradient, a weight gradient and an update of a stage take,
/// in any unit.
struct split_costs {
  std::int64_t f = 1, i = 1, w = 1, u = 0;
};

/// \param costs of each stage, or one for all: at least 1
/// \param most_held microbatches of a rank; 0: as many as there are stages
/// \param latency of a message between ranks, in the unit of the costs
schedule zb_auto(std::vector<split_costs> costs = {{}}, int most_held = 0,
                 std::int64_t latency = 0);
schedule v_half();
schedule v_min();

/// \param waves there and back, at least 1: a rank has twice as many stages
schedule hanayo(int waves = 1);

/// Which Chimera.
struct chimera_options {
  bool eager = true; ///< Directions add their gradients while backwards still run.
  int pairs = 1;     ///< Of pipelines head to tail, at least 1; f in the paper.
  /// A forward's slot has two microbatches, so that it is as long as a backward's. Of
  /// one pair only.
  bool forward_doubling = false;
};

schedule chimera(const chimera_options& which = {});
schedule dualpipe();
schedule dualpipev();

/// \param update_every microbatches that an update of a stage covers, at least 1
/// \param vertical_sync whether all stages read the version that stage 0 read
schedule pipedream(int update_every = 1, bool vertical_sync = false);

schedule two_bw();

/// \param max_active_keys microbatches forwarded but not yet backwarded at stage 0
/// \param min_update_frequency gradients that a stage sums before it updates
schedule ampnet(int max_active_keys = 4, int min_update_frequency = 8);

/// A parameter that a user may set by name. `off` and `on` stand for 0 and 1.
struct schedule_parameter {
  std::string_view name;
  int initial;
  int least;
  int most;
  std::string_view meaning;
};

/// A schedule as users find it.
struct catalog_entry {
  std::string_view name;
  std::string_view summary;
  std::vector<schedule_parameter> parameters;
  /// Takes one value for each parameter, in order.
  schedule (*make)(std::span<const int> values);
};

/// Every schedule there is.
std::span<const catalog_entry> catalog();

/// The names in the catalog: "naive, gpipe, ...".
std::string catalog_names();

/// The schedule called `name`, its parameters set from `values`, the others as in the
/// catalog. On error says what was wrong and what is allowed.
tl::expected<schedule, std::string>
find_schedule(std::string_view name,
              const std::map<std::string, std::string>& values = {});

} // namespace troupe
