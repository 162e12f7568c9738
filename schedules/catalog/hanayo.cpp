// SPDX-License-Identifier: BSD-3-Clause
// Hanayo: stages run along the ranks and back in waves, 2w stages on each rank. A
// microbatch turns at the ends without waiting. Ranks fill and drain in a 2w-th of the
// time, with the weights of one pipeline.
// Liu et al., "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large
// Model Training Efficiency", 2023.
//
//   2 ranks, 1 wave, 2 microbatches, F = B; 3F0 is of stage 3
//   rank 0  0F0 0F1 .   3F0 3B0 3F1 3B1 0B0 .   0B1
//   rank 1  .   1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1
//
// As many microbatches as there are ranks are in flight. Ranks run the inputs that have
// arrived: backwards first, then lower microbatches, then later stages. Forwards and
// backwards count as equally long, as in the paper's pictures.

#include "schedules/catalog/catalog.hpp"
#include "schedules/greedy_search.hpp"

namespace troupe {

schedule hanayo(int waves) {
  const auto where = placement::waves(waves);
  return {.name = "hanayo",
          .where = where,
          .order = best_of(
            [where](const shape& dims) {
              return std::vector<search_rules>{{.in_flight = ranks_of(where, dims)}};
            },
            where)};
}

} // namespace troupe
