// SPDX-License-Identifier: BSD-3-Clause
// Recursive halving and doubling. Ranks exchange in pairs, at half the distance each
// round, and each rank continues with half of the chunks; all_gather is the same
// backwards. The order sends as few bytes as a ring, in as few rounds as a tree.
// Rabenseifner, "Optimization of collective reduction operations", 2004; Thakur,
// Rabenseifner and Gropp, 2005.
//
//   reduce_scatter, 4 ranks     rank 0    1    2    3
//   before                      abcd abcd abcd abcd
//   round 0, distance 2         ab   ab   cd   cd       0 <-> 2, 1 <-> 3
//   round 1, distance 1         a    b    c    d        0 <-> 1, 2 <-> 3
//
// With whole arrays in place of halves every rank has the sum after the first half of
// the rounds. That order sends more bytes, and suits arrays whose cost is the latency.
//
// Where the number of ranks is no power of two, the first ranks form pairs before. The
// odd rank of a pair folds into the even one, which acts for both. The odd rank
// receives a part of the result at the end.
//
//   5 ranks   0 and 1 act as one: (0 1) 2 3 4

#include "messaging/collective_catalog.hpp"

#include <algorithm>
#include <bit>

namespace troupe {

namespace {

/// The ranks that act: a power of two.
struct acting_ranks {
  explicit acting_ranks(int ranks)
    : count(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
      folded(ranks - count) {
    // nop
  }

  /// The number of rounds in which pairs exchange.
  int levels() const { return std::bit_width(static_cast<unsigned>(count)) - 1; }

  /// The number of rounds in which ranks fold in, or fold out: 0 or 1.
  int folds() const { return folded > 0 ? 1 : 0; }

  bool acts(int rank) const { return rank >= 2 * folded || rank % 2 == 0; }
  bool acts_for_two(int rank) const { return rank < 2 * folded && rank % 2 == 0; }
  int index(int rank) const { return rank < 2 * folded ? rank / 2 : rank - folded; }

  /// The rank with this index among the acting ones. Where each rank has one chunk,
  /// also the first of the rank's chunks.
  int rank(int index) const { return index < folded ? 2 * index : index + folded; }

  int count;
  int folded; ///< Ranks that do not act.
};

/// The number of chunks: one for each acting rank, or one for each rank.
enum class cut : std::uint8_t { by_acting, by_ranks };

chunk_range chunks_of(const acting_ranks& acting, cut chunking, int first, int count) {
  if (chunking == cut::by_acting)
    return {first, count};
  return {acting.rank(first), acting.rank(first + count) - acting.rank(first)};
}

/// Exchanges blocks with the acting rank at a distance; a block has the chunks of
/// `distance` acting ranks. In a sum the rank sends the partner's block, otherwise the
/// rank's own.
collective_step meet(int rank, int ranks, int round, int distance, cut chunking,
                     reception use) {
  const acting_ranks acting{ranks};
  if (!acting.acts(rank))
    return {.round = round};
  const int index = acting.index(rank);
  const int mine = index / distance * distance; // the first index of the block
  const auto local_chunks = chunks_of(acting, chunking, mine, distance);
  const auto partner_chunks = chunks_of(acting, chunking, mine ^ distance, distance);
  const bool sums = use == reception::add;
  const int partner = acting.rank(index ^ distance);
  return {.round = round,
          .to = partner,
          .sent = sums ? partner_chunks : local_chunks,
          .from = partner,
          .received = sums ? local_chunks : partner_chunks,
          .use = use};
}

collective_step halve(int rank, int ranks, int round, int level, cut chunking) {
  const int distance = acting_ranks{ranks}.count >> (level + 1);
  return meet(rank, ranks, round, distance, chunking, reception::add);
}

collective_step grow(int rank, int ranks, int round, int level, cut chunking) {
  return meet(rank, ranks, round, 1 << level, chunking, reception::copy);
}

/// A rank that does not act sends chunks to the rank that acts for it.
collective_step fold_in(int rank, int ranks, chunk_range range, reception use) {
  const acting_ranks acting{ranks};
  if (!acting.acts(rank))
    return {.to = rank - 1, .sent = range};
  if (acting.acts_for_two(rank))
    return {.from = rank + 1, .received = range, .use = use};
  return {};
}

/// A rank that acts for another sends chunks back to that rank.
collective_step fold_out(int rank, int ranks, int round, chunk_range range) {
  const acting_ranks acting{ranks};
  if (acting.acts_for_two(rank))
    return {.round = round, .to = rank + 1, .sent = range};
  if (!acting.acts(rank))
    return {.round = round, .from = rank - 1, .received = range};
  return {.round = round};
}

/// The chunk of the rank that does not act, in a folded pair.
chunk_range folded_chunk(int rank) {
  return {rank / 2 * 2 + 1, 1};
}

int one_a_rank(int ranks) {
  return ranks;
}

int one_each_acting(int ranks) {
  return acting_ranks{ranks}.count;
}

int steps_of_half(int ranks) {
  const acting_ranks acting{ranks};
  return acting.levels() + 2 * acting.folds();
}

int steps_of_both(int ranks) {
  const acting_ranks acting{ranks};
  return 2 * acting.levels() + 2 * acting.folds();
}

/// The cost of the rounds in which pairs exchange, one way: block sizes are the powers
/// of two.
collective_cost cost_of_levels(const acting_ranks& acting, cut chunking, double n) {
  const int chunks =
    chunking == cut::by_ranks ? acting.rank(acting.count) : acting.count;
  collective_cost result{.rounds = static_cast<double>(acting.levels()),
                         .messages =
                           static_cast<double>(acting.levels()) * acting.count,
                         .bytes = (acting.count - 1) * n};
  for (int distance = 1; distance < acting.count; distance *= 2) {
    const double largest = chunks_of(acting, chunking, 0, distance).count * n / chunks;
    result.peak_bytes = std::max(result.peak_bytes, largest);
    result.serial_bytes += largest;
  }
  return result;
}

/// Adds the cost of a round in which ranks fold in, or fold out.
void add_fold(collective_cost& cost, const acting_ranks& acting, double bytes) {
  if (acting.folded == 0)
    return;
  cost.rounds += 1;
  cost.messages += acting.folded;
  cost.bytes += acting.folded * bytes;
  cost.peak_bytes = std::max(cost.peak_bytes, bytes);
  cost.serial_bytes += bytes;
}

/// The bytes that ranks add when others fold in, and then in the rounds of pairs.
double summed(const acting_ranks& acting, double bytes, double of_levels) {
  return (acting.folded > 0 ? bytes : 0) + of_levels;
}

collective_cost cost_of_half(int ranks, double n) {
  const acting_ranks acting{ranks};
  auto cost = cost_of_levels(acting, cut::by_ranks, n);
  add_fold(cost, acting, n);
  add_fold(cost, acting, n / ranks);
  return cost;
}

collective_cost cost_of_scatter(int ranks, double n) {
  auto cost = cost_of_half(ranks, n);
  const acting_ranks acting{ranks};
  cost.summed_bytes =
    summed(acting, n, cost_of_levels(acting, cut::by_ranks, n).serial_bytes);
  return cost;
}

collective_cost cost_of_both(int ranks, double n) {
  const acting_ranks acting{ranks};
  auto cost = cost_of_levels(acting, cut::by_acting, n);
  cost.rounds *= 2;
  cost.messages *= 2;
  cost.bytes *= 2;
  cost.summed_bytes = summed(acting, n, cost.serial_bytes);
  cost.serial_bytes *= 2;
  // Pairs without a folded rank are ahead in the last rounds of halving. Such blocks of
  // n/8, n/16, ... may arrive before the block of n/2 from a pair that was late.
  if (acting.folded > 0)
    cost.ahead_bytes = std::max(acting.count / 4 - 1, 0) * n / acting.count;
  add_fold(cost, acting, n);
  add_fold(cost, acting, n);
  return cost;
}

collective_step reduce_scatter_step(int rank, int ranks, int index) {
  const acting_ranks acting{ranks};
  const int level = index - acting.folds();
  if (level < 0)
    return fold_in(rank, ranks, {0, ranks}, reception::add);
  if (level < acting.levels())
    return halve(rank, ranks, index, level, cut::by_ranks);
  return fold_out(rank, ranks, index, folded_chunk(rank));
}

collective_step all_gather_step(int rank, int ranks, int index) {
  const acting_ranks acting{ranks};
  const int level = index - acting.folds();
  if (level < 0)
    return fold_in(rank, ranks, folded_chunk(rank), reception::copy);
  if (level < acting.levels())
    return grow(rank, ranks, index, level, cut::by_ranks);
  return fold_out(rank, ranks, index, {0, ranks});
}

collective_step all_reduce_step(int rank, int ranks, int index) {
  const acting_ranks acting{ranks};
  const int level = index - acting.folds();
  if (level < 0)
    return fold_in(rank, ranks, {0, acting.count}, reception::add);
  if (level < acting.levels())
    return halve(rank, ranks, index, level, cut::by_acting);
  if (level < 2 * acting.levels())
    return grow(rank, ranks, index, level - acting.levels(), cut::by_acting);
  return fold_out(rank, ranks, index, {0, acting.count});
}

constexpr chunk_range whole_array{0, 1};

collective_step doubling_step(int rank, int ranks, int index) {
  const acting_ranks acting{ranks};
  const int level = index - acting.folds();
  if (level < 0)
    return fold_in(rank, ranks, whole_array, reception::add);
  if (level >= acting.levels())
    return fold_out(rank, ranks, index, whole_array);
  if (!acting.acts(rank))
    return {.round = index};
  const int partner = acting.rank(acting.index(rank) ^ (acting.count >> (level + 1)));
  return {.round = index,
          .to = partner,
          .sent = whole_array,
          .from = partner,
          .received = whole_array,
          .use = reception::add};
}

collective_cost cost_of_doubling(int ranks, double n) {
  const acting_ranks acting{ranks};
  const double levels = acting.levels();
  collective_cost cost{.rounds = levels,
                       .messages = levels * acting.count,
                       .bytes = levels * acting.count * n,
                       .peak_bytes = levels > 0 ? n : 0,
                       .serial_bytes = levels * n,
                       .summed_bytes = summed(acting, n, levels * n)};
  add_fold(cost, acting, n);
  add_fold(cost, acting, n);
  return cost;
}

} // namespace

collective_order doubling_all_reduce() {
  return {.operation = collective_operation::all_reduce,
          .name = "doubling",
          .idea = "recursive doubling: pairs sum whole arrays (Thakur et al. 2005)",
          .chunks = [](int) { return 1; },
          .steps = steps_of_half,
          .step = doubling_step,
          .cost = cost_of_doubling,
          .growth = "time log K, total K log K n, peak n"};
}

collective_order halving_reduce_scatter() {
  return {.operation = collective_operation::reduce_scatter,
          .name = "halving",
          .idea = "recursive halving (Rabenseifner 2004)",
          .chunks = one_a_rank,
          .steps = steps_of_half,
          .step = reduce_scatter_step,
          .cost = cost_of_scatter,
          .growth = "time log K + n, total K n, peak n/2"};
}

collective_order halving_all_gather() {
  return {.operation = collective_operation::all_gather,
          .name = "halving",
          .idea = "recursive doubling (Thakur et al. 2005)",
          .chunks = one_a_rank,
          .steps = steps_of_half,
          .step = all_gather_step,
          .cost = cost_of_half,
          .growth = "time log K + n, total K n, peak n/2"};
}

collective_order halving_all_reduce() {
  return {.operation = collective_operation::all_reduce,
          .name = "halving",
          .idea = "recursive halving, then doubling (Rabenseifner 2004)",
          .chunks = one_each_acting,
          .steps = steps_of_both,
          .step = all_reduce_step,
          .cost = cost_of_both,
          .growth = "time log K + n, total K n, peak n/2"};
}

} // namespace troupe
