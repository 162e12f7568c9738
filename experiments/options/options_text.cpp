// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/options_text.hpp"

#include "experiments/options/parsing.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

// An absent value is null.
template <class Value>
struct nlohmann::adl_serializer<std::optional<Value>> {
  static void to_json(json& to, const std::optional<Value>& from) {
    to = from ? json(*from) : json(nullptr);
  }
  static void from_json(const json& from, std::optional<Value>& to) {
    to = from.is_null() ? std::nullopt : std::optional{from.get<Value>()};
  }
};

template <>
struct nlohmann::adl_serializer<std::chrono::milliseconds> {
  static void to_json(json& to, std::chrono::milliseconds from) { to = from.count(); }
  static void from_json(const json& from, std::chrono::milliseconds& to) {
    to = std::chrono::milliseconds{from.get<std::int64_t>()};
  }
};

namespace troupe {

using nlohmann::json;

// Exchanges, schedules and orders hold functions, so their names are sent as text.

void to_json(json& to, const replica_exchange& from) {
  to = {from.name, from.compression->name};
}

void from_json(const json& from, replica_exchange& to) {
  to = parse_exchange(from.at(0).get<std::string>()).value();
  const auto* const compression = find_codec(from.at(1).get<std::string>());
  if (compression == nullptr)
    throw std::invalid_argument("there is no compression " + from.at(1).dump());
  to.compression = compression;
}

void to_json(json& to, const collective_order& from) {
  to = {name_of(from.operation), from.name};
}

void from_json(const json& from, collective_order& to) {
  const auto known_orders = collective_catalog();
  const auto match = std::ranges::find_if(
    known_orders, [&](const collective_order& order) { return from == json(order); });
  if (match == known_orders.end())
    throw std::invalid_argument("there is no collective " + from.dump());
  to = *match;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(expert_options, count, chosen, capacity, balance,
                                   noise, shared, seed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(model_options, model, layers, width, heads, length,
                                   words, experts, tied)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(data_options, text, evaluation, name, path, batch,
                                   init, seed, data_seed, init_seed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(mesh_options, data, stages, tensor, expert,
                                   sequence_parallel, recomputes, recomputed_units,
                                   exchange, split, unit_costs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(uneven_microbatches, samples, lengths)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(rate_schedule, cosine, warmup, floor)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(optimizer_options, name, parameters, rate, schedule,
                                   momentum, beta1, beta2, epsilon, weight_decay,
                                   decay_only_matrices, clip, scope)
void to_json(json& to, const processor& from) {
  to = {{"gpu", from.gpu}, {"tf32", from.tf32}};
}

/// Checks the number before the cast: no cast of a received number yields another
/// processor.
void from_json(const json& from, processor& to) {
  const auto& gpu = from.at("gpu");
  const bool on_gpu = gpu.is_number_unsigned() && gpu.get<std::uint64_t>() < most_gpus;
  const bool on_cpu = gpu.is_number_integer() && !gpu.is_number_unsigned()
                      && gpu.get<std::int64_t>() == processor::cpu;
  if (!on_gpu && !on_cpu)
    throw std::invalid_argument("there is no processor " + gpu.dump());
  to = {on_gpu ? gpu.get<int>() : processor::cpu, from.at("tf32").get<bool>()};
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(run_options, clock, products, sums, processors,
                                   lists_processors, threads, stall_timeout)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(link_cost, latency, bytes_per_second)
/// The key of `by_op` is "of", as in earlier versions.
void to_json(json& to, const cost_table& from) {
  to = {{"of", from.by_op}, {"pair", from.pair}};
}

void from_json(const json& from, cost_table& to) {
  from.at("of").get_to(to.by_op);
  from.at("pair").get_to(to.pair);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(simulated_sizes, message, gradient, buckets, sum,
                                   sums, experts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(cost_options, text, actions, link, sum_rate, sizes,
                                   slowdowns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(machine_model, ranks_each, inside, between, pairs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(machine_options, model, links)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(evaluation_options, every, samples, verify, target)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(checkpoint_options, folder, every, keep, resume)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(collective_options, orders, ranks, values, machines,
                                   sum_rate)

namespace {

json schedules_json(const schedule_options& from) {
  auto chosen = json::array();
  for (const auto& entry : from.chosen)
    chosen.push_back(
      {{"text", entry.text}, {"of_all", entry.of_all}, {"file", entry.file}});
  return {{"chosen", chosen},
          {"microbatches", from.microbatches},
          {"steps", from.steps},
          {"epochs", from.epochs},
          {"uneven", from.uneven}};
}

/// \param default_optimizer as parse_schedule takes it
schedule_options schedules_from(const json& from,
                                const optimizer_options* default_optimizer) {
  schedule_options result{.chosen = {},
                          .microbatches = from.at("microbatches"),
                          .steps = from.at("steps"),
                          .epochs = from.at("epochs").get<std::optional<double>>(),
                          .uneven = from.at("uneven")};
  for (const auto& entry : from.at("chosen")) {
    const std::string file = entry.at("file"); // no file on this machine is read
    result.chosen.push_back(
      parse_schedule(entry.at("text"), entry.at("of_all"), default_optimizer, &file)
        .value());
  }
  return result;
}

/// Parses JSON from an untrusted sender. The library casts a fraction to any type of
/// number, so a number that no int holds is allowed only for bytes and rates. Deep
/// nesting is refused, as writing such JSON out would overflow the stack.
/// \throws std::exception
json parsed(const std::string& text) {
  constexpr int most_depth = 16;
  constexpr double most = std::numeric_limits<int>::max();
  const std::set<std::string> large{"bytes_per_second", "sum_rate", "message",
                                    "gradient",         "sum",      "experts"};
  std::string key;
  return json::parse(
    text, [&](int depth, json::parse_event_t event, const json& value) {
      if (depth > most_depth)
        throw std::invalid_argument("the JSON is nested too deep");
      if (event == json::parse_event_t::key)
        key = value.get<std::string>();
      if (value.is_number_float() && !(std::abs(value.get<double>()) <= most)
          && !large.contains(key))
        throw std::out_of_range("'" + key + "' is too large");
      if (value.is_number_float() && key.ends_with("seed"))
        throw std::out_of_range("a seed is a whole number");
      return true;
    });
}

} // namespace

std::string to_text(const options& o) {
  return json{{"trains", o.trains},
              {"model", o.model},
              {"data", o.data},
              {"mesh", o.mesh},
              {"schedules", schedules_json(o.schedules)},
              {"optimizer", o.optimizer},
              {"run", o.run},
              {"cost", o.cost},
              {"machines", o.machines},
              {"evaluation", o.evaluation},
              {"checkpoint", o.checkpoint},
              {"collectives", o.collectives},
              {"own", text_of(o.own)}}
    .dump();
}

tl::expected<options, std::string> options_from(const std::string& text,
                                                own_parts own) {
  try {
    const auto values = parsed(text);
    const auto here = text_of(own);
    if (const auto asked = values.value("own", std::string{}); asked != here)
      return problem{
        "the leader's program has " + (asked.empty() ? "no network and data" : asked)
        + " of its own, and the node's has " + (here.empty() ? "none" : here)
        + ": start the node with the same network and data"};
    options result{.trains = values.at("trains"),
                   .model = values.at("model"),
                   .data = values.at("data"),
                   .mesh = values.at("mesh"),
                   .schedules = {},
                   .optimizer = values.at("optimizer"),
                   .run = values.at("run"),
                   .cost = values.at("cost"),
                   .machines = values.at("machines"),
                   .evaluation = values.at("evaluation"),
                   .checkpoint = values.at("checkpoint"),
                   .collectives = values.at("collectives"),
                   .output = {}};
    result.own = std::move(own);
    result.schedules = schedules_from(values.at("schedules"),
                                      result.trains ? &result.optimizer : nullptr);
    return result;
  } catch (const std::exception& error) {
    return problem{std::string{"the leader's options are wrong: "} + error.what()};
  }
}

} // namespace troupe
