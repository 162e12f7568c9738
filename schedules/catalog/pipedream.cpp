// SPDX-License-Identifier: BSD-3-Clause
// PipeDream: 1F1B without a flush. A backward reads the weights that the forward read,
// so every stage stashes a version for each microbatch in flight.
// Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training",
// 2019.
//
//   slot    0  1  2  3  4  5  6  7  8  9        3 stages; each B is followed by its U
//   rank 0  F0 .  F1 .  F2 B0 F3 B1 F4 B2
//   rank 1  .  F0 .  F1 B0 F2 B1 F3 B2 F4
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/slots.hpp"

#include <algorithm>

namespace troupe {

namespace {

// The newest local version: 1F1B has run S-1-s backwards fewer than forwards.
int newest(const shape& dims, int stage, int microbatch, int update_every) {
  return std::max(0, microbatch - (dims.stages - 1 - stage)) / update_every;
}

// Vertical sync: every stage reads the version that stage 0 read.
int newest_of_stage_0(const shape& dims, int, int microbatch, int update_every) {
  return newest(dims, 0, microbatch, update_every);
}

} // namespace

schedule pipedream(int update_every, bool vertical_sync) {
  return {
    .name = "pipedream",
    .order = one_f_one_b_slot,
    .weights = vertical_sync ? weight_rule{"vertical_sync", newest_of_stage_0}
                             : weight_rule{"stash", newest},
    .streams = true,
    .update_every = update_every,
  };
}

} // namespace troupe
