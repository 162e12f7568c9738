// SPDX-License-Identifier: BSD-3-Clause
#include "actors/plan/saved_piece.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

std::string name_of(const saved_array& array) {
  if (array.what == saved_array::kind::moment)
    return "moment-" + std::to_string(array.number);
  return array.number == 0 ? "parameters"
                           : "parameters-" + std::to_string(array.number);
}

std::vector<saved_piece> pieces_of(const run_plan& plan, position where,
                                   shared_out what, savers who) {
  std::vector<saved_piece> result;
  if (where.direction > 0)
    return result;
  const bool in_shares = what == shared_out::optimizer_state ? plan.state_shares() > 1
                                                             : plan.shares_out(what);
  const auto groups = plan.groups_of(where);
  const auto buckets = plan.layer_buckets(where);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const auto& layer = *buckets[b].what;
    const bucket_share share{groups[b].index, groups[b].count};
    if (!in_shares && share.index > 0 && who == savers::first)
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
  for_each_run(piece.of,
               [&](std::int64_t there, std::int64_t here, std::int64_t count) {
                 const auto begin = std::max(here, piece.begin),
                            end = std::min(here + count, piece.end);
                 if (begin < end)
                   run(there + begin - here, begin - piece.begin, end - begin);
               });
}

} // namespace troupe
