// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/cost_options.hpp"
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"
#include "models/short_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace troupe {

namespace {

constexpr std::array known{"F",        "B",    "I",       "W",         "U",
                           "R",        "FB",   "latency", "bytes",     "tensor",
                           "gradient", "sums", "experts", "bandwidth", "buckets",
                           "replica",  "sum"};

/// Whether the costs for a key may differ by rank, as costs of actions do.
bool differs_by_rank(const std::string& key) {
  return key.size() == 1 || key == "FB";
}

/// "a number from 0 to 1e12"
std::string range_of(const std::string& key) {
  if (key == "buckets" || key == "sums")
    return "a whole number from 1 to 10,000";
  return key == "sum" ? "a number from 1 to 1e12" : "a number from 0 to 1e12";
}

/// Values by key.
using given_costs = std::map<std::string, std::vector<double>>;

tl::expected<given_costs, std::string> values_of(const std::string& text, int stages) {
  given_costs result;
  for (const auto& part : split(text, ',')) {
    const auto equals = part.find('=');
    const auto key = part.substr(0, equals);
    const bool is_known = std::ranges::find(known, key) != known.end();
    if (equals == std::string::npos || !is_known) {
      const std::vector<std::string> names{known.begin(), known.end()};
      return problem{
        "--cost '" + part + "'" + (is_known ? "" : did_you_mean(key, names))
        + ": write KEY=VALUE, for example F=1 for milliseconds or F=1/2/1/1 "
          "for ranks; --help-all lists the keys"};
    }
    const problem no_number{"--cost " + part + ": give " + key + "= " + range_of(key)
                            + (key == "replica"       ? " for each data replica"
                               : differs_by_rank(key) ? ", or one for each rank"
                                                      : "")};
    if (result.contains(key))
      return problem{"--cost " + part + ": " + key
                     + " is given twice; give each key once"};
    auto& values = result[key];
    for (const auto& value : split(part.substr(equals + 1), '/')) {
      const auto parsed = number(value);
      if (!parsed || *parsed > 1e12)
        return no_number;
      values.push_back(*parsed);
    }
    const auto count = static_cast<int>(values.size());
    if (count == 0)
      return no_number;
    if (key != "replica" && count != 1 && (!differs_by_rank(key) || count != stages))
      return problem{
        "--cost " + part
        + (differs_by_rank(key)
             ? ": give a single value, or a value for each of the "
                 + std::to_string(stages) + " ranks of a pipeline"
             : ": give " + key + " a single value, as ranks do not differ in " + key)};
  }
  return result;
}

/// One sentence about values of the right form that are out of range, else an empty
/// text.
std::string out_of_range(const given_costs& costs, int data) {
  double product = 1;
  for (const char* key : {"buckets", "sums"})
    if (const auto entry = costs.find(key); entry != costs.end()) {
      const double count = entry->second[0];
      if (count < 1 || count > 10'000 || count != std::floor(count))
        return std::string{"--cost "} + key + "=" + short_text(count) + ": give " + key
               + "= " + range_of(key);
      product *= count;
    }
  if (product > 10'000)
    return "--cost buckets= times sums= is " + short_text(product)
           + ": give a product from 1 to 10,000";
  if (const auto entry = costs.find("sum");
      entry != costs.end() && entry->second[0] < 1)
    return "--cost sum=" + short_text(entry->second[0])
           + ": give 1 to 1e12 bytes a second, or leave sum= out for sums that take no "
             "time";
  if (const auto entry = costs.find("replica");
      entry != costs.end() && (std::ssize(entry->second) != data || data == 1))
    return data == 1
             ? "--cost replica= needs several data replicas: say --mesh data=2 or "
               "more, or leave replica= out"
             : "--cost replica= has " + std::to_string(std::ssize(entry->second))
                 + " values for " + std::to_string(data)
                 + " data replicas: give a value for each, for example replica=1/2.5 "
                   "for two";
  return {};
}

nanoseconds from_ms(double ms) {
  return static_cast<nanoseconds>(std::llround(ms * 1e6));
}

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (auto& v : values)
    v *= factor;
  return values;
}

/// Adds values stage by stage; a single value counts for every stage.
std::vector<double> sum(std::vector<double> a, std::vector<double> b) {
  a.resize(std::max(a.size(), b.size()), a[0]);
  b.resize(a.size(), b[0]);
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] += b[i];
  return a;
}

cost_table actions_of(given_costs costs) {
  costs.try_emplace("F", std::vector{1.0});
  if (!costs.contains("B"))
    costs["B"] = costs.contains("I") && costs.contains("W")
                   ? sum(costs["I"], costs["W"])
                   : scaled(costs["F"], 2);
  for (const char* half : {"I", "W"})
    costs.try_emplace(half, scaled(costs["B"], 0.5));
  costs.try_emplace("U", std::vector{0.0});
  cost_table result;
  for (const double ms : costs["FB"])
    result.pair.push_back(from_ms(ms));
  for (std::size_t i = 0; i < op_count; ++i)
    for (const double ms : costs[std::string{letter_of(static_cast<op>(i))}])
      result.by_op[i].push_back(from_ms(ms));
  return result;
}

} // namespace

option_rows cost_rows() {
  return under(
    "Clock and costs", programs::without_measurements,
    {row<&typed_options::cost>(
      "--cost",
      "Costs in virtual time: F=1,B=2 gives milliseconds of actions. F=1/2/1/1 has a "
      "value for each rank of a pipeline. Bytes are those of fp32, also with "
      "--precision bf16.\n"
      "F\tforward; 1 if not given\n"
      "B\tbackward; I+W, or else 2F, if not given\n"
      "I, W\tinput gradient and weight gradient; each B/2 if not given\n"
      "U\tupdate; 0 if not given\n"
      "R\trecomputed forward; F if not given\n"
      "FB\ta forward and a backward as one action; F+B if not given\n"
      "latency\tmilliseconds of a message\n"
      "bandwidth\tbandwidth of a rank's port, in bytes a second\n"
      "bytes\tbytes of an activation\n"
      "sum\tbytes that a rank sums in a second in collectives; sums take no time if "
      "not given\n"
      "gradient\tbytes of a stage's gradients between data replicas\n"
      "buckets\tnumber of messages that carry a stage's gradients\n"
      "tensor\tbytes of a sum between tensor shards\n"
      "sums\tnumber of sums between tensor shards in a forward, and in a backward\n"
      "experts\tbytes of the rows that a stage sends to experts\n"
      "replica\tfactors of the times of data replicas: replica=1/2.5 makes replica 1 "
      "slower by 2.5")});
}

tl::expected<cost_options, std::string> parse_costs(const std::string& text,
                                                    const mesh_options& mesh) {
  const auto costs = values_of(text, mesh.stages);
  if (!costs)
    return problem{costs.error()};
  if (auto error = out_of_range(*costs, mesh.data); !error.empty())
    return problem{error};
  const auto single = [&](const char* key, double otherwise = 0) {
    const auto entry = costs->find(key);
    return entry == costs->end() ? otherwise : entry->second[0];
  };
  const auto slowdowns = costs->find("replica");
  return cost_options{.text = text,
                      .actions = actions_of(*costs),
                      .link = {.latency = from_ms(single("latency")),
                               .bytes_per_second = single("bandwidth")},
                      .sum_rate = single("sum"),
                      .sizes = {.message = single("bytes"),
                                .gradient = single("gradient"),
                                .buckets = static_cast<int>(single("buckets", 1)),
                                .sum = single("tensor"),
                                .sums = static_cast<int>(single("sums", 2)),
                                .experts = single("experts")},
                      .slowdowns = slowdowns == costs->end() ? std::vector<double>{}
                                                             : slowdowns->second};
}

std::string outlasts_clock(const cost_options& costs, const run_plan& plan) {
  if (plan.dims.microbatches < 1)
    return {}; // another check refuses such a plan
  const auto& sizes = costs.sizes;
  double message = sizes.message, gradient = sizes.gradient, buckets = sizes.buckets;
  double sum = sizes.sum, sums = sizes.sums;
  if (plan.work) {
    const auto& layers = plan.work->whole.layers;
    message = gradient = sum = 0;
    buckets = static_cast<double>(layers.size());
    sums = 2 * buckets;
    for (const auto& l : layers) {
      const auto samples = static_cast<double>(plan.batches().largest());
      message = std::max(message, samples * static_cast<double>(l->output_size(1)) * 4);
      gradient += static_cast<double>(l->bucket()) * 4;
    }
    sum = message;
  }
  // A message may wait at each of five ports and links for the messages of all ranks
  // that share it.
  double slowdown = 1;
  for (const double of_replica : costs.slowdowns)
    slowdown = std::max(slowdown, of_replica);
  const auto link = plan.machine.links.slowest();
  const double in_line =
    5.0 * std::clamp(plan.machine.links.ranks_each, 1, plan.ranks());
  const auto transfer_time = [](double bytes, double rate) {
    return rate > 0 ? bytes / rate * 1e9 : 0;
  };
  const auto travels = [&](double bytes) { // including the sum
    return in_line * transfer_time(bytes, link.bytes_per_second)
           + static_cast<double>(link.latency)
           + slowdown * transfer_time(bytes, costs.sum_rate);
  };
  double slowest = travels(message);
  if (plan.mesh[axis::tensor] > 1) // no sum has more rounds than four for each shard
    slowest += 4.0 * plan.mesh[axis::tensor] * sums * travels(sum);
  if (plan.mesh[axis::expert] > 1) // rows go to experts and come back
    slowest += 2 * travels(sizes.experts + sum) * buckets;
  // each end receives the gradient of the other end
  if (plan.work && plan.work->whole.tied())
    slowest += 2 * travels(gradient);
  for (const auto& values : costs.actions.by_op)
    for (const auto value : values)
      slowest += static_cast<double>(value) * slowdown;
  // No exchange has more rounds than two for each data replica.
  const double exchange =
    plan.mesh[axis::data] > 1 || plan.directions() > 1
      ? 2.0 * plan.mesh[axis::data] * buckets * travels(gradient / buckets)
      : 0;
  const auto& dims = plan.dims;
  const double total =
    (slowest * dims.stages + exchange) * dims.microbatches * dims.steps;
  return total < 9e18 ? ""
                      : "--cost makes the run longer than 292 years, the most of the "
                        "virtual clock: give smaller costs, or fewer --steps";
}

} // namespace troupe
