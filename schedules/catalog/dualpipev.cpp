// SPDX-License-Identifier: BSD-3-Clause
// DualPipeV: DualPipe cut in half. Stages run along half as many ranks and back, in a
// V, so that every stage exists once. A forward on the way there runs in a pair with a
// backward on the way back, and the other way round. DeepSeek-AI's repository DualPipe,
// after Sea AI Lab's "cut in half". PyTorch's ScheduleDualPipeV has the same order.
//
//   2 ranks, 4 microbatches; 3F0 is of stage 3
//   rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F33B1 = = .   3F20B0 = = 3B2 = .   3F30B1 ..
//   rank 1  .   1F0 2F0 1F1 2F1 1F2 2B0 =   2F21B0 = = 1F32B1 = = 2F31B1 = = 2B2 = ..

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/pairs.hpp"
#include "schedules/program.hpp"

namespace troupe {

namespace {

std::vector<action> batch_of(int rank, const shape& dims) {
  const auto where = placement::waves(1);
  batch_writer to{where, dims, {0, rank}, {0, dims.stages - 1 - rank}};
  return batch_in_pairs(std::move(to), rank, dims.stages / 2, dims.microbatches);
}

std::string refuses(const shape& dims) {
  if (dims.microbatches >= dims.stages)
    return {};
  return "dualpipev needs a number of microbatches of at least 2 * ranks, not "
         + std::to_string(dims.microbatches);
}

} // namespace

schedule dualpipev() {
  return {.name = "dualpipev",
          .where = placement::waves(1),
          .order = batch_by_batch(batch_of),
          .refuses = refuses};
}

} // namespace troupe
