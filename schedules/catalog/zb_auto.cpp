// ZB-Auto: a greedy search for what a split backward makes possible, by what F, I and W
// take and by how many microbatches a rank may hold. A rank prefers input gradients,
// for which others wait, then forwards; weight gradients fill what is left. How far
// forwards run ahead, whether they go before weight gradients, and whether a rank waits
// a little for what will arrive, is tried, and the fastest taken.
// Qi et al., "Zero Bubble Pipeline Parallelism", 2024, section 3.
//
//   2 stages, 3 microbatches, of which a rank holds 2; F=2, I=3, W=1
//   rank 0  F0 =  F1 =  .  .  .  I0 =  =  W0 F2 =  I1 =  =  W1 .  I2 =  =  W2
//   rank 1  .  .  F0 =  I0 =  =  F1 =  I1 =  =  W0 F2 =  I2 =  =  W1 W2

#include "schedules/catalog/catalog.hpp"
#include "schedules/greedy_search.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe {

namespace {

// Without a limit a rank holds what 1F1B's first one does.
std::vector<search_rules> tried(search_rules usual, const shape& dims) {
  if (usual.most_held == 0)
    usual.most_held = dims.stages;
  std::vector<search_rules> result;
  for (const int ahead : {0, 1, 2})
    for (const bool forward_first : {true, false})
      for (const bool waits : {true, false})
        for (const bool alternates : {true, false}) {
          auto& one = result.emplace_back(usual);
          one.ahead = ahead;
          one.forward_first = forward_first;
          one.waits = waits;
          one.alternates = alternates;
        }
  return result;
}

} // namespace

schedule zb_auto(std::vector<split_costs> costs, int most_held) {
  search_rules usual{.splits = true,
                     .forward = {},
                     .backward = {},
                     .weight = {},
                     .most_held = most_held};
  for (const auto& [f, i, w] : costs) {
    usual.forward.push_back(std::max<std::int64_t>(f, 1));
    usual.backward.push_back(std::max<std::int64_t>(i, 1));
    usual.weight.push_back(std::max<std::int64_t>(w, 1));
  }
  return {.name = "zb-auto",
          .order = best_of([usual](const shape& dims) { return tried(usual, dims); },
                           placement::linear()),
          .most_held = most_held,
          .refuses = [stages = costs.size()](const shape& dims) -> std::string {
            constexpr std::int64_t most = 1 << 18; // which take six seconds
            if (std::int64_t{dims.stages} * dims.microbatches > most)
              return "zb-auto searches batches of at most 262,144 stages times "
                     "microbatches";
            if (stages == 1 || static_cast<int>(stages) == dims.stages)
              return {};
            return "zb-auto has costs of " + std::to_string(stages)
                   + " stages: give it one for all, or one for each of "
                   + std::to_string(dims.stages);
          }};
}

} // namespace troupe
