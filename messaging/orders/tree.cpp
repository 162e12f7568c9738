// SPDX-License-Identifier: BSD-3-Clause
// Binomial trees, in as many rounds as a rank has bits (Thakur, Rabenseifner and Gropp,
// "Optimization of Collective Communication Operations in MPICH", 2005).
//
//   to the root                     from the root
//   round 0   0 <- 1, 2 <- 3, ...   round 0   0 -> 4
//   round 1   0 <- 2, 4 <- 6        round 1   0 -> 2, 4 -> 6
//   round 2   0 <- 4                round 2   0 -> 1, 2 -> 3, ...
//
// The ranks of a subtree are neighbours, so gather and scatter send ranges of chunks.
// The subtree of rank r at distance d, with r itself, holds chunks [r, r + d).

#include "messaging/collective_catalog.hpp"

#include <algorithm>
#include <bit>

namespace troupe {

namespace {

int rounds(int ranks) {
  return std::bit_width(static_cast<unsigned>(ranks - 1));
}

constexpr chunk_range whole{0, 1};

/// The chunks of a rank and of all ranks below, if the rank is joined at this distance.
chunk_range below(int rank, int distance, int ranks) {
  return {rank, std::min(distance, ranks - rank)};
}

/// The step to the root in the round of ranks at a distance of 2^level.
collective_step upward(int rank, int ranks, int level, bool sums) {
  const int distance = 1 << level;
  const auto range = [&](int child) {
    return sums ? whole : below(child, distance, ranks);
  };
  if (rank % (2 * distance) == distance)
    return {.round = level, .to = rank - distance, .sent = range(rank)};
  const int child = rank + distance;
  if (rank % (2 * distance) == 0 && child < ranks)
    return {.round = level,
            .from = child,
            .received = range(child),
            .use = sums ? reception::add : reception::copy};
  return {.round = level};
}

/// The same step in the other direction.
collective_step downward(int rank, int ranks, int index, bool sends_whole) {
  const auto up = upward(rank, ranks, rounds(ranks) - 1 - index, sends_whole);
  return {.round = index,
          .to = up.from,
          .sent = up.received,
          .from = up.to,
          .received = up.sent,
          .use = reception::copy};
}

/// The cost of trees in which each message is a whole array.
collective_cost cost_of_arrays(int ranks, double n, int times) {
  const double levels = times * rounds(ranks), messages = times * (ranks - 1);
  return {levels, messages, messages * n, ranks > 1 ? n : 0, levels * n};
}

/// The cost of trees with ranges of chunks. In each round the first range is as long as
/// any.
collective_cost cost_of_ranges(int ranks, double n) {
  collective_cost result{.rounds = static_cast<double>(rounds(ranks)),
                         .messages = static_cast<double>(ranks - 1)};
  for (int distance = 1; distance < ranks; distance *= 2) {
    for (int child = distance; child < ranks; child += 2 * distance)
      result.bytes += below(child, distance, ranks).count * n / ranks;
    const double longest = below(distance, distance, ranks).count * n / ranks;
    result.peak_bytes = std::max(result.peak_bytes, longest);
    result.serial_bytes += longest;
  }
  return result;
}

collective_cost once(int ranks, double n) {
  return cost_of_arrays(ranks, n, 1);
}

/// The cost of `times` trees. Up the first one the root adds an array a round.
collective_cost with_sums(int ranks, double n, int times) {
  auto result = cost_of_arrays(ranks, n, times);
  result.summed_bytes = rounds(ranks) * n;
  return result;
}

int one_chunk(int) {
  return 1;
}

int one_a_rank(int ranks) {
  return ranks;
}

} // namespace

collective_order tree_reduce() {
  return {.operation = collective_operation::reduce,
          .name = "tree",
          .idea = "pairs of ranks add their arrays, up a binomial tree",
          .chunks = one_chunk,
          .steps = rounds,
          .step = [](int rank, int ranks,
                     int index) { return upward(rank, ranks, index, true); },
          .cost = [](int ranks, double n) { return with_sums(ranks, n, 1); },
          .growth = "time log K, total K n, peak n"};
}

collective_order tree_broadcast() {
  return {.operation = collective_operation::broadcast,
          .name = "tree",
          .idea = "each rank sends the array to its children in a binomial tree",
          .chunks = one_chunk,
          .steps = rounds,
          .step = [](int rank, int ranks,
                     int index) { return downward(rank, ranks, index, true); },
          .cost = once,
          .growth = "time log K, total K n, peak n"};
}

collective_order tree_gather() {
  return {.operation = collective_operation::gather,
          .name = "tree",
          .idea = "ever longer ranges of chunks, up a binomial tree",
          .chunks = one_a_rank,
          .steps = rounds,
          .step = [](int rank, int ranks,
                     int index) { return upward(rank, ranks, index, false); },
          .cost = cost_of_ranges,
          .growth = "time log K + n, total n log K, peak n/2"};
}

collective_order tree_scatter() {
  return {.operation = collective_operation::scatter,
          .name = "tree",
          .idea = "ever shorter ranges of chunks, down a binomial tree",
          .chunks = one_a_rank,
          .steps = rounds,
          .step = [](int rank, int ranks,
                     int index) { return downward(rank, ranks, index, false); },
          .cost = cost_of_ranges,
          .growth = "time log K + n, total n log K, peak n/2"};
}

collective_order tree_all_reduce() {
  return {.operation = collective_operation::all_reduce,
          .name = "tree",
          .idea = "reduce to rank 0, then broadcast, on a binomial tree",
          .chunks = one_chunk,
          .steps = [](int ranks) { return 2 * rounds(ranks); },
          .step =
            [](int rank, int ranks, int index) {
              if (index < rounds(ranks))
                return upward(rank, ranks, index, true);
              auto step = downward(rank, ranks, index - rounds(ranks), true);
              step.round = index;
              return step;
            },
          .cost = [](int ranks, double n) { return with_sums(ranks, n, 2); },
          .growth = "time log K, total K n, peak n"};
}

} // namespace troupe
