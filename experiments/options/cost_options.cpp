#include "experiments/options/cost_options.hpp"

#include "experiments/options/parsing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace troupe {

tl::expected<costs, std::string> parse_costs(const std::string& text, int stages) {
  std::map<std::string, std::vector<double>> given;
  const auto wrong = [&](const std::string& part) {
    return problem{"--cost '" + part
                   + "': write F=1,B=2 in milliseconds, one value or one a stage as "
                     "F=1/2/1/1; also I, W, U, latency, bandwidth, bytes, "
                     "gradient, buckets, tensor, sums, experts and replica"};
  };
  for (const auto& part : split(text, ',')) {
    const auto equals = part.find('=');
    if (equals == std::string::npos)
      return wrong(part);
    const auto key = part.substr(0, equals);
    constexpr std::array known{"F",       "B",         "I",       "W",        "U",
                               "latency", "bytes",     "tensor",  "gradient", "sums",
                               "experts", "bandwidth", "buckets", "replica"};
    if (std::ranges::find(known, key) == known.end() || given.contains(key))
      return wrong(part);
    auto& values = given[key];
    for (const auto& value : split(part.substr(equals + 1), '/')) {
      const auto parsed = number(value);
      if (!parsed || *parsed > 1e12)
        return wrong(part);
      values.push_back(*parsed);
    }
    const auto count = static_cast<int>(values.size());
    if (count == 0)
      return wrong(part);
    if (key != "replica" && count != 1 && (key.size() > 1 || count != stages))
      return problem{"--cost " + part + ": give one value, or one for each of the "
                     + std::to_string(stages) + " stages"};
  }
  const auto scaled = [](std::vector<double> values, double by) {
    for (auto& v : values)
      v *= by;
    return values;
  };
  const auto sum = [](std::vector<double> a, std::vector<double> b) {
    a.resize(std::max(a.size(), b.size()), a[0]);
    b.resize(a.size(), b[0]);
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] += b[i];
    return a;
  };
  given.try_emplace("F", std::vector{1.0});
  if (!given.contains("B"))
    given["B"] = given.contains("I") && given.contains("W")
                   ? sum(given["I"], given["W"])
                   : scaled(given["F"], 2);
  for (const char* half : {"I", "W"})
    given.try_emplace(half, scaled(given["B"], 0.5));
  given.try_emplace("U", std::vector{0.0});
  costs result;
  const char* const letters[] = {"F", "B", "I", "W", "U"};
  for (std::size_t i = 0; i < op_count; ++i)
    for (const double ms : given[letters[i]])
      result.actions.of[i].push_back(static_cast<nanoseconds>(std::llround(ms * 1e6)));
  for (const char* key : {"buckets", "sums"})
    if (given.contains(key))
      if (const double count = given[key][0];
          count < 1 || count > 10'000 || count != std::floor(count))
        return problem{std::string{"--cost: "} + key
                       + " is a whole number from 1 to 10,000"};
  if (given.contains("buckets") && given.contains("sums")
      && given["buckets"][0] * given["sums"][0] > 10'000)
    return problem{"--cost: buckets times sums is from 1 to 10,000"};
  result.slowdowns = given["replica"];
  const auto single = [&](const char* key) {
    return given.contains(key) ? given[key][0] : 0.0;
  };
  result.link = {.latency =
                   static_cast<nanoseconds>(std::llround(single("latency") * 1e6)),
                 .bytes_per_second = single("bandwidth")};
  result.sizes = {.message = single("bytes"),
                  .gradient = single("gradient"),
                  .buckets =
                    given.contains("buckets") ? static_cast<int>(single("buckets")) : 1,
                  .sum = single("tensor"),
                  .sums = given.contains("sums") ? static_cast<int>(single("sums")) : 2,
                  .experts = single("experts")};
  return result;
}

std::string wrong_slowdowns(const costs& given, const run_plan& plan) {
  const auto count = static_cast<int>(given.slowdowns.size());
  if (count == 0 || (count == plan.data && count > 1))
    return {};
  return "--cost replica: give one value for each of several data replicas, as "
         "replica=1/2.5 for two; there are "
         + std::to_string(plan.data);
}

std::string outlasts_clock(const costs& given, const run_plan& plan) {
  if (plan.dims.microbatches < 1)
    return {}; // refused for that
  const auto& sizes = given.sizes;
  double message = sizes.message, gradient = sizes.gradient, buckets = sizes.buckets;
  double sum = sizes.sum, sums = sizes.sums;
  if (plan.work) {
    const auto& layers = plan.work->whole.layers;
    message = gradient = sum = 0;
    buckets = static_cast<double>(layers.size());
    sums = 2 * buckets;
    for (const auto& l : layers) {
      const auto samples = static_cast<double>(plan.batches().largest());
      message = std::max(message, samples * static_cast<double>(l->output()) * 4);
      gradient += static_cast<double>(l->bucket()) * 4;
    }
    sum = message;
  }
  // A message may wait at each of five ports and links for those of all ranks that
  // share it.
  const auto link = plan.machines.slowest();
  const double in_line = 5.0 * std::clamp(plan.machines.ranks_each, 1, plan.ranks());
  const auto travels = [&](double bytes) {
    const double ns =
      link.bytes_per_second > 0 ? bytes / link.bytes_per_second * 1e9 : 0;
    return in_line * ns + static_cast<double>(link.latency);
  };
  double slowest = travels(message);
  if (plan.tensor > 1) // no sum has more rounds than that
    slowest += 4.0 * plan.tensor * sums * travels(sum);
  double slowdown = 1;
  for (const double of_replica : given.slowdowns)
    slowdown = std::max(slowdown, of_replica);
  if (plan.expert > 1) // rows go there and come back
    slowest += 2 * travels(sizes.experts + sum) * buckets;
  for (const auto& values : given.actions.of)
    for (const auto value : values)
      slowest += static_cast<double>(value) * slowdown;
  // No exchange has more rounds than two for each data replica.
  const double exchange = plan.data > 1 || plan.directions() > 1
                            ? 2.0 * plan.data * buckets * travels(gradient / buckets)
                            : 0;
  const auto& dims = plan.dims;
  const double all =
    (slowest * dims.stages + exchange) * dims.microbatches * dims.steps;
  return all < 9e18 ? ""
                    : "--cost: at these costs a run of this size may last longer than "
                      "the virtual clock's 292 years; choose smaller ones";
}

} // namespace troupe
