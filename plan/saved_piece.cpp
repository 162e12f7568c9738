// SPDX-License-Identifier: BSD-3-Clause
#include "plan/saved_piece.hpp"

#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

std::string name_of(const saved_array& array) {
  if (array.type == saved_array::kind::state)
    return array.state;
  return array.number == 0 ? "parameters"
                           : "parameters-" + std::to_string(array.number);
}

std::vector<saved_piece> pieces_of(const run_plan& plan, position where,
                                   shared_out tensors, savers saver) {
  std::vector<saved_piece> result;
  if (where.direction > 0)
    return result;
  const bool in_shares = tensors == shared_out::optimizer_state
                           ? state_shares(plan) > 1
                           : shares_out(plan, tensors);
  const auto groups = groups_of(plan, where);
  const auto buckets = layer_buckets(plan, where);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const auto& layer = *buckets[b].owner;
    const bucket_share share{groups[b].index, groups[b].count};
    if (!in_shares && share.index > 0 && saver == savers::first_holder)
      continue;
    const auto first = in_shares ? share.begin(layer.bucket()) : 0,
               last = in_shares ? share.end(layer.bucket()) : layer.bucket();
    for (const auto& p : layer.parameters()) {
      const bool others_have_it = where.tensor > 0 && !p.cut;
      const auto begin = std::clamp<std::int64_t>(first - p.offset, 0, p.values()),
                 end = std::clamp<std::int64_t>(last - p.offset, 0, p.values());
      if (p.tied_to.empty() && !others_have_it && begin < end)
        result.push_back({buckets[b].of_layer, b, p, begin, end});
    }
  }
  return result;
}

std::int64_t values_of(const std::vector<saved_piece>& pieces) {
  return std::transform_reduce(pieces.begin(), pieces.end(), std::int64_t{0},
                               std::plus{}, [](const auto& p) { return p.values(); });
}

void for_each_run(
  const saved_piece& piece,
  const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& run) {
  for_each_run(piece.part, [&](std::int64_t whole_offset, std::int64_t part_offset,
                               std::int64_t count) {
    const auto begin = std::max(part_offset, piece.begin),
               end = std::min(part_offset + count, piece.end);
    if (begin < end)
      run(whole_offset + begin - part_offset, begin - piece.begin, end - begin);
  });
}

} // namespace troupe
