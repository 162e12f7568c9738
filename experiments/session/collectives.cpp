// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/collectives.hpp"

#include "experiments/report/seconds.hpp"
#include "messaging/plain_collective.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace troupe {

namespace {

/// Values whose sum has other bits in another order.
std::vector<std::vector<float>> arrays_of(int ranks, std::int64_t values) {
  std::uint32_t state = 1;
  std::vector<std::vector<float>> result(static_cast<std::size_t>(ranks));
  for (auto& array : result)
    for (std::int64_t i = 0; i < values; ++i) {
      state = state * 1664525U + 1013904223U; // Numerical Recipes' generator
      array.push_back(static_cast<float>(state >> 8) / 8388608.0F - 1.0F);
    }
  return result;
}

/// The length of arrays up to which a check takes little time and memory.
std::int64_t values_to_check(int ranks, std::int64_t values) {
  constexpr std::int64_t most_additions = 1 << 30, most_values_in_all = 1 << 24;
  return std::min({values, most_additions / ranks / ranks, most_values_in_all / ranks});
}

bool same_bits(const std::vector<float>& array, const collective_outcome& expected) {
  return expected.values.empty()
         || std::memcmp(array.data() + expected.begin, expected.values.data(),
                        expected.values.size() * sizeof(float))
              == 0;
}

/// Runs a collective with real arrays. The second value tells whether every rank
/// received the right result.
std::pair<collective_result, bool> run_checked(collective_trial trial) {
  trial.arrays = arrays_of(trial.ranks, trial.values);
  std::vector<const float*> views;
  for (const auto& array : trial.arrays)
    views.push_back(array.data());
  const auto expected = plain_collective(
    trial.order, views, chunks::even(trial.values, trial.order.chunks(trial.ranks)));
  auto result = perform(std::move(trial));
  bool is_right = true;
  for (std::size_t r = 0; r < expected.size(); ++r)
    is_right = is_right && same_bits(result.arrays[r], expected[r]);
  return {std::move(result), is_right};
}

double formula_seconds(const collective_cost& formula_cost,
                       const collective_options& asked) {
  const auto& link = asked.machines.model.inside;
  return formula_cost.seconds(seconds_of(link.latency), link.bytes_per_second,
                              asked.sum_rate);
}

} // namespace

collective_measurement measure(const collective_options& asked,
                               const collective_order& order, int ranks) {
  const auto checked = values_to_check(ranks, asked.values);
  collective_trial trial{order, ranks,         checked, asked.machines.model,
                         0,     asked.sum_rate};
  auto [result, is_right] = run_checked(trial);
  if (checked < asked.values) {
    trial.values = asked.values;
    result = perform(trial);
  }
  const auto formula_cost = order.cost(ranks, 4.0 * static_cast<double>(asked.values));
  return {.order = order,
          .ranks = ranks,
          .sent = result.sent,
          .seconds = seconds_of(result.makespan),
          .formula_cost = formula_cost,
          .formula_seconds = asked.machines.model.machine_of(ranks - 1) > 0
                               ? std::nullopt
                               : std::optional{formula_seconds(formula_cost, asked)},
          .checked_values = checked,
          .is_right = is_right};
}

std::optional<crossover> ring_beats_tree(int ranks, const link_cost& link,
                                         double sum_rate) {
  const auto ring = ring_all_reduce(), tree = tree_all_reduce();
  const auto ring_cost = ring.cost(ranks, 1), tree_cost = tree.cost(ranks, 1);
  const double more_rounds = ring_cost.rounds - tree_cost.rounds;
  if (more_rounds <= 0 || link.latency == 0 || link.bytes_per_second <= 0)
    return {};
  const double latency = seconds_of(link.latency);
  const double sums = tree_cost.summed_bytes - ring_cost.summed_bytes;
  const double formula_bytes =
    more_rounds * latency * link.bytes_per_second
    / (tree_cost.serial_bytes - ring_cost.serial_bytes
       + (sum_rate > 0 ? sums * link.bytes_per_second / sum_rate : 0));

  // Times are almost linear in the size, so a secant finds the crossover in few steps.
  // Sizes are multiples that the ring cuts evenly.
  const auto ring_behind_by = [&](std::int64_t chunk) {
    const auto values = chunk * ranks;
    const auto takes = [&](const collective_order& order) {
      return perform({order, ranks, values, {.inside = link}, 0, sum_rate}).makespan;
    };
    return static_cast<double>(takes(ring) - takes(tree));
  };
  constexpr std::int64_t largest_chunk = std::int64_t{1} << 40;
  std::int64_t previous_chunk = 1, chunk = 1 << 20;
  double previous_delay = ring_behind_by(previous_chunk);
  for (int i = 0; i < 20 && std::abs(chunk - previous_chunk) > chunk / 10'000; ++i) {
    const double delay = ring_behind_by(chunk);
    if (delay == previous_delay)
      break;
    const double slope =
      (delay - previous_delay) / static_cast<double>(chunk - previous_chunk);
    const auto next = static_cast<double>(chunk) - delay / slope;
    previous_chunk = std::exchange(
      chunk, std::clamp<std::int64_t>(std::llround(next), 1, largest_chunk));
    previous_delay = delay;
  }
  return crossover{4.0 * static_cast<double>(chunk * ranks), formula_bytes};
}

} // namespace troupe
