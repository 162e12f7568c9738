// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/collective_options.hpp"
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"
#include "models/short_text.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

constexpr int most_ranks = 1024;
// sums of bytes fit into 63 bits
constexpr std::int64_t most_values = 1'000'000'000'000;

tl::expected<std::int64_t, std::string> values_of(const typed_collectives& typed) {
  if (typed.values && typed.bytes)
    return problem{"--values and --bytes both give the size of an array: leave "
                   "--values or --bytes out"};
  const auto bytes = typed.bytes.value_or(1 << 20);
  if (bytes % 4 != 0)
    return problem{"--bytes " + std::to_string(bytes)
                   + ": give a multiple of 4, the bytes of a value"};
  const auto values = typed.values.value_or(bytes / 4);
  if (values < 0 || values > most_values)
    return problem{"--values or --bytes is out of range: an array has 0 to "
                   "1,000,000,000,000 values of 4 bytes"};
  return values;
}

/// The orders that the user's choice of operations and algorithms leaves.
tl::expected<std::vector<collective_order>, std::string>
orders_of(const typed_collectives& typed) {
  const auto asked = [](const auto& names, std::string_view name) {
    return names.empty() || std::ranges::find(names, name) != names.end();
  };
  const auto known = collective_catalog();
  for (const auto& name : typed.operations)
    if (std::ranges::none_of(
          known, [&](const auto& c) { return name_of(c.operation) == name; }))
      return problem{unknown_name("operation", name, names_in(operation_names()))};
  for (const auto& name : typed.algorithms)
    if (std::ranges::none_of(known, [&](const auto& c) { return c.name == name; }))
      return problem{unknown_name("algorithm", name, names_in(algorithm_names()))};
  std::vector<collective_order> result;
  for (const auto& order : known)
    if (asked(typed.operations, name_of(order.operation))
        && asked(typed.algorithms, order.name))
      result.push_back(order);
  if (result.empty())
    return problem{"no operation of --operation has an algorithm of --algorithm: see "
                   "./troupe collectives --help-all"};
  return result;
}

/// Whether a collective could last longer than the virtual clock, which counts
/// nanoseconds in 63 bits.
bool outlasts_clock(const machine_model& machines, double sum_rate,
                    std::int64_t values) {
  const auto slowest = machines.slowest();
  // Between machines a message may wait for the messages of all other ranks.
  const double waits = machines.ranks_each > 0 ? most_ranks : 1;
  const double bytes = 4 * static_cast<double>(values);
  const double round = static_cast<double>(slowest.latency)
                       + waits * static_cast<double>(slowest.occupied(bytes))
                       + (sum_rate > 0 ? bytes / sum_rate * 1e9 : 0);
  return round * 2 * most_ranks > 9e18;
}

} // namespace

option_rows collective_rows() {
  constexpr auto group = &typed_options::collectives;
  using typed = typed_collectives;
  return joined(
    under(
      "Collectives", programs::all,
      {row<group, &typed::operations>(
         "--operation,--operations",
         "Operations: " + operation_names() + ". Default: all.", {.commas = true}),
       row<group, &typed::algorithms>(
         "--algorithm,--algorithms",
         "Algorithms: " + algorithm_names() + ". Default: all.", {.commas = true}),
       row<group, &typed::ranks>(
         "--ranks",
         "Ranks of a collective, 1 to 1,024. With several numbers, for example 2,4,8, "
         "every collective runs with each number of ranks.",
         {.commas = true}),
       row<group, &typed::bytes>(
         "--bytes", "Bytes of each rank's array, a multiple of 4. Default: 1048576."),
       row<group, &typed::values>(
         "--values",
         "Number of fp32 values in each rank's array, in place of --bytes."),
       row<group, &typed::latency>("--latency",
                                   "Latency of a message, in milliseconds."),
       row<group, &typed::bandwidth>(
         "--bandwidth", "Bandwidth of each rank's port, in bytes a second. Value 0: no "
                        "limit, and bytes take no time."),
       row<group, &typed::sum>(
         "--sum", "Bytes that a rank sums in a second. Value 0: sums take no time.")}),
    under("Clock and costs", programs::all,
          {row<group, &typed::machines>("--machines", machines_help)}));
}

tl::expected<collective_options, std::string> parse(const typed_collectives& typed) {
  for (const int ranks : typed.ranks)
    if (ranks < 1 || ranks > most_ranks)
      return problem{"--ranks " + std::to_string(ranks)
                     + ": a collective has 1 to 1,024 ranks"};
  const auto values = values_of(typed);
  if (!values)
    return problem{values.error()};
  auto orders = orders_of(typed);
  if (!orders)
    return problem{orders.error()};
  if (!(typed.latency >= 0 && typed.latency <= 1e6))
    return problem{"--latency " + short_text(typed.latency)
                   + ": a latency is from 0 to 1,000,000 milliseconds"};
  if (!(typed.bandwidth == 0 || (typed.bandwidth >= 1 && typed.bandwidth <= 1e15)))
    return problem{"--bandwidth " + short_text(typed.bandwidth)
                   + ": give 1 to 1e15 bytes a second, or 0 for no limit"};
  if (!(typed.sum == 0 || (typed.sum >= 1 && typed.sum <= 1e15)))
    return problem{
      "--sum " + short_text(typed.sum)
      + ": give 1 to 1e15 bytes a second, or 0 for sums that take no time"};
  const link_cost inside{.latency =
                           static_cast<nanoseconds>(std::llround(typed.latency * 1e6)),
                         .bytes_per_second = typed.bandwidth};
  auto machines = parse_machines(typed.machines, inside, std::ranges::max(typed.ranks));
  if (!machines)
    return problem{machines.error()};
  if (outlasts_clock(machines->model, typed.sum, *values))
    return problem{
      "a collective may take longer than 292 years, the most of the virtual clock: "
      "give smaller --bytes, or larger --bandwidth and --sum"};
  return collective_options{std::move(*orders), typed.ranks, *values,
                            std::move(*machines), typed.sum};
}

} // namespace troupe
