// SPDX-License-Identifier: BSD-3-Clause
// Chunks travel around a ring of ranks: once for the sums, once for the distribution.
// Each rank sends no more bytes than any all_reduce must, one chunk a round. Patarasuk
// and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// 2009.
//
//   reduce_scatter, 4 ranks: each sends the next one sums of chunks a b c d
//   round 0   0: d0        1: a1        2: b2        3: c3
//   round 1   0: c30       1: d01       2: a12       3: b23
//   round 2   0: b230      1: c301      2: d012      3: a123
//   then      0: a1230     1: b2301     2: c3012     3: d0123
//
//   all_gather continues: each sends first its own chunk, then received ones

#include "messaging/collective_catalog.hpp"

namespace troupe {

namespace {

int modulo(int x, int ranks) {
  return (x % ranks + ranks) % ranks;
}

/// Sends a chunk to the next rank, and receives the preceding chunk from the previous
/// rank.
collective_step around(int rank, int ranks, int round, int chunk, reception use) {
  return {.round = round,
          .to = modulo(rank + 1, ranks),
          .sent = {modulo(chunk, ranks), 1},
          .from = modulo(rank - 1, ranks),
          .received = {modulo(chunk - 1, ranks), 1},
          .use = use};
}

collective_step summing(int rank, int ranks, int index) {
  return around(rank, ranks, index, rank - 1 - index, reception::add);
}

collective_step handing_out(int rank, int ranks, int index) {
  return around(rank, ranks, index, rank - index, reception::copy);
}

collective_cost around(int ranks, double n, int times) {
  const double rounds = times * (ranks - 1);
  return {rounds, ranks * rounds, rounds * n, ranks > 1 ? n / ranks : 0,
          rounds * n / ranks};
}

collective_cost once_around(int ranks, double n) {
  return around(ranks, n, 1);
}

/// The cost of `times` rounds of the ring. In the first one each rank adds a chunk per
/// step.
collective_cost with_sums(int ranks, double n, int times) {
  auto result = around(ranks, n, times);
  result.summed_bytes = (ranks - 1) * n / ranks;
  return result;
}

int one_a_rank(int ranks) {
  return ranks;
}

int to_all_others(int ranks) {
  return ranks - 1;
}

} // namespace

collective_order ring_reduce_scatter() {
  return {.operation = collective_operation::reduce_scatter,
          .name = "ring",
          .idea = "chunks are summed around a ring (Patarasuk and Yuan 2009)",
          .chunks = one_a_rank,
          .steps = to_all_others,
          .step = summing,
          .cost = [](int ranks, double n) { return with_sums(ranks, n, 1); },
          .growth = "time K, total K n, peak n/K"};
}

collective_order ring_all_gather() {
  return {.operation = collective_operation::all_gather,
          .name = "ring",
          .idea = "chunks are sent around a ring",
          .chunks = one_a_rank,
          .steps = to_all_others,
          .step = handing_out,
          .cost = once_around,
          .growth = "time K, total K n, peak n/K"};
}

collective_order ring_all_reduce() {
  return {.operation = collective_operation::all_reduce,
          .name = "ring",
          .idea =
            "reduce_scatter and all_gather around a ring (Patarasuk and Yuan 2009)",
          .chunks = one_a_rank,
          .steps = [](int ranks) { return 2 * (ranks - 1); },
          .step =
            [](int rank, int ranks, int index) {
              if (index < ranks - 1)
                return summing(rank, ranks, index);
              auto step = handing_out(rank, ranks, index - (ranks - 1));
              step.round = index;
              return step;
            },
          .cost = [](int ranks, double n) { return with_sums(ranks, n, 2); },
          .growth = "time K, total K n, peak n/K"};
}

} // namespace troupe
