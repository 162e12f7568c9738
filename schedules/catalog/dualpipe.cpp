// SPDX-License-Identifier: BSD-3-Clause
// DualPipe: two pipelines through the same ranks in opposite directions. Forwards and
// backwards run in pairs: a forward of one direction with a backward of the other.
// Communication of one is hidden behind computation of the other.
// DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, and its repository DualPipe.
//
//   2 ranks, 4 microbatches, half of them in each direction; F3B0 is a pair
//   rank 0  F0 F2 F1 B2 =  F3B0 =  =  B3 =  I1 W1
//   rank 1  F2 F0 F3 B0 =  F1B2 =  =  B1 =  I3 W3

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/pairs.hpp"
#include "schedules/program.hpp"

namespace troupe {

namespace {

// Ranks of the second half mirror ranks of the first half, with the directions
// exchanged.
std::vector<action> batch_of(int rank, const shape& dims) {
  const auto where = placement::bidirectional();
  const int ranks = dims.stages, mirror = ranks - 1 - rank;
  const hosted_stage down{0, rank}, up{1, mirror};
  const bool first_half = rank < mirror;
  batch_writer to{where, dims, first_half ? down : up, first_half ? up : down};
  return batch_in_pairs(std::move(to), std::min(rank, mirror), ranks / 2,
                        dims.microbatches / 2);
}

std::string refuses(const shape& dims) {
  if (dims.stages % 2 == 0 && dims.microbatches % 2 == 0
      && dims.microbatches >= 2 * dims.stages)
    return {};
  return "dualpipe needs an even number of ranks (--stages), and an even number of "
         "microbatches of at least 2 * ranks";
}

} // namespace

schedule dualpipe() {
  return {.name = "dualpipe",
          .where = placement::bidirectional(),
          .order = batch_by_batch(batch_of),
          .refuses = refuses};
}

} // namespace troupe
