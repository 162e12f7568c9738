// SPDX-License-Identifier: BSD-3-Clause
// Every rank sends a whole array to every other rank, and adds all arrays in the order
// of ranks. The better algorithms are measured against this one.
//
//   round 0   0 --> 1 --> 2 --> 3 --> 0      to the rank after
//   round 1   0 --> 2, 1 --> 3, 2 --> 0, 3 --> 1
//   round 2   0 --> 3, 1 --> 0, 2 --> 1, 3 --> 2
//   then      every rank: ((x0 + x1) + x2) + x3
//
// Arrays arrive in another order than the order of the sum, so a rank holds all arrays
// until the last one has arrived. The rank's own array is one of these, as a message to
// the rank itself.
//
// reduce_scatter does the same with chunk s in place of the array for each rank s. The
// all_gather sends the results back: each rank is the server of a chunk.

#include "messaging/collective_catalog.hpp"

namespace troupe {

namespace {

constexpr chunk_range whole{0, 1};

collective_step naive_step(int rank, int ranks, int index) {
  if (index < ranks) {
    const int distance = index; // 0: to the rank itself
    return {.round = distance > 0 ? distance - 1 : 0,
            .to = (rank + distance) % ranks,
            .sent = whole,
            .from = (rank - distance + ranks) % ranks,
            .received = whole,
            .use = reception::hold};
  }
  const int from = index - ranks;
  const int distance = (rank - from + ranks) % ranks;
  return {.round = distance > 0 ? distance - 1 : 0,
          .from = from,
          .received = whole,
          .use = from == 0 ? reception::copy : reception::add};
}

collective_step naive_chunk_step(int rank, int ranks, int index) {
  auto step = naive_step(rank, ranks, index);
  if (step.to != nobody)
    step.sent = {step.to, 1};
  step.received = {rank, 1};
  return step;
}

collective_cost to_all_others(int ranks, double n) {
  const double other_ranks = ranks - 1;
  return {other_ranks, ranks * other_ranks, other_ranks * n,
          other_ranks > 0 ? n / ranks : 0, other_ranks * n / ranks};
}

/// The cost with sums: a rank adds all other chunks to the first one, after the last
/// arrival.
collective_cost of_sums(int ranks, double n) {
  auto result = to_all_others(ranks, n);
  result.summed_bytes = result.serial_bytes;
  return result;
}

int one_a_rank(int ranks) {
  return ranks;
}

} // namespace

collective_order naive_reduce_scatter() {
  return {.operation = collective_operation::reduce_scatter,
          .name = "naive",
          .idea = "each chunk to its rank, summed in the order of ranks",
          .chunks = one_a_rank,
          .steps = [](int ranks) { return ranks > 1 ? 2 * ranks : 0; },
          .step = naive_chunk_step,
          .cost = of_sums,
          .growth = "time K, total K n, peak n/K"};
}

collective_order naive_all_gather() {
  return {.operation = collective_operation::all_gather,
          .name = "naive",
          .idea = "each rank's chunk to all ranks",
          .chunks = one_a_rank,
          .steps = [](int ranks) { return ranks - 1; },
          .step = [](int rank, int ranks, int index) -> collective_step {
            const int from = (rank - index - 1 + ranks) % ranks;
            return {.round = index,
                    .to = (rank + index + 1) % ranks,
                    .sent = {rank, 1},
                    .from = from,
                    .received = {from, 1},
                    .use = reception::copy};
          },
          .cost = to_all_others,
          .growth = "time K, total K n, peak n/K"};
}

collective_order naive_all_reduce() {
  return {.operation = collective_operation::all_reduce,
          .name = "naive",
          .idea = "each rank's array to all ranks, summed in the order of ranks",
          .chunks = [](int) { return 1; },
          .steps = [](int ranks) { return ranks > 1 ? 2 * ranks : 0; },
          .step = naive_step,
          .cost = [](int ranks, double n) -> collective_cost {
            const double other_ranks = ranks - 1;
            return {.rounds = other_ranks,
                    .messages = ranks * other_ranks,
                    .bytes = ranks * other_ranks * n,
                    .peak_bytes = other_ranks > 0 ? n : 0,
                    .serial_bytes = other_ranks * n,
                    .summed_bytes = other_ranks * n};
          },
          .growth = "time K, total K^2 n, peak n"};
}

} // namespace troupe
