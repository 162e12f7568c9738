// SPDX-License-Identifier: BSD-3-Clause
#include "plan/tied_ends.hpp"

#include "plan/layout.hpp"
#include "plan/replica_rules.hpp"
#include "plan/run_plan.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_layers.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// The place of a tied matrix in a stage.
struct tied_location {
  int stage;
  std::size_t bucket;  // of the stage
  std::int64_t offset; // of the matrix, in the whole bucket
  std::int64_t size;   // of that bucket
};

tied_location location_of(const run_plan& plan, position where, tied_end which) {
  const auto tied = *network_of(plan, where).tied();
  const auto& location = which == tied_end::head ? tied.head : tied.embedding;
  const auto& first = plan.work->first_layers;
  const auto stage =
    static_cast<int>(std::ranges::upper_bound(first, static_cast<int>(location.layer))
                     - first.begin() - 1);
  where.stage = stage;
  const auto buckets = layer_buckets(plan, where);
  const auto bucket = std::ranges::find_if(buckets, [&](const layer_bucket& b) {
    return b.of_layer == location.layer && b.expert < 0;
  });
  return {stage, static_cast<std::size_t>(bucket - buckets.begin()), location.offset,
          bucket->owner->bucket()};
}

/// The values of the matrix in a share of the matrix's bucket: [first, last).
std::pair<std::int64_t, std::int64_t> range_of(const run_plan& plan, position where,
                                               const tied_location& location,
                                               std::int64_t values) {
  const auto share = shares_of(plan, where)[location.bucket];
  const auto first =
    std::max(share.begin(location.size) - location.offset, std::int64_t{0});
  return {first, std::max(first, std::min(share.end(location.size) - location.offset,
                                          values))};
}

} // namespace

bool has_tied_end(const run_plan& plan, position where) {
  if (!plan.work || !network_of(plan, where).tied())
    return false;
  return location_of(plan, where, tied_end::head).stage == where.stage
         || location_of(plan, where, tied_end::embedding).stage == where.stage;
}

std::vector<tied_values> tied_values_of(const run_plan& plan, position where) {
  std::vector<tied_values> result;
  const auto values = network_of(plan, where).tied()->values;
  const auto extent = extent_of(plan, shared_out::gradients);
  for (const auto which : {tied_end::embedding, tied_end::head}) {
    const auto local = location_of(plan, where, which),
               remote = location_of(plan, where, opposite_of(which));
    if (local.stage != where.stage)
      continue;
    const auto [first, last] = range_of(plan, where, local, values);
    const auto share = shares_of(plan, where)[local.bucket].begin(local.size);
    auto& end = result.emplace_back();
    end = {which,
           local.bucket,
           first,
           last,
           local.offset + first - (extent == bucket_extent::share ? share : 0),
           {}};
    const bool shared = shares_out(plan, shared_out::optimizer_state);
    position peer{where.data, 0, remote.stage, where.tensor};
    for (int d = 0; d < plan.mesh[axis::data]; ++d) {
      if (shared)
        peer.data = d;
      else if (d != where.data)
        continue;
      const auto [begin, past_end] = range_of(plan, peer, remote, values);
      if (const auto from = std::max(first, begin), to = std::min(last, past_end);
          from < to)
        end.exchanges.push_back({peer, from, to});
    }
  }
  return result;
}

std::vector<position> tied_peers_of(const run_plan& plan, position where) {
  std::vector<position> result;
  for (const auto& end : tied_values_of(plan, where))
    for (const auto& e : end.exchanges)
      if (std::ranges::find(result, e.peer) == result.end())
        result.push_back(e.peer);
  return result;
}

// A buffer is held until the update of its receiver has ended. That is before the
// receiver begins the next update, and so before the sender can begin the update after
// that.
payload_bound tied_copies(const run_plan& plan, position where) {
  payload_bound result;
  for (const auto& end : tied_values_of(plan, where))
    for (const auto& e : end.exchanges) {
      result.values = std::max(result.values, e.last - e.first);
      result.buffers += 2;
    }
  return result;
}

} // namespace troupe
