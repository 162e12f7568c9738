// SPDX-License-Identifier: BSD-3-Clause
#include "actors/embedding/job_facts.hpp"

#include "kernels/bf16_choice.hpp"
#include "kernels/checksum.hpp"
#include "models/optimizer_catalog.hpp"
#include "models/short_text.hpp"
#include "plan/deciding_facts.hpp"
#include "schedules/files/schedule_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace troupe {

namespace {

using fact_map = std::map<std::string, std::string>;

constexpr const char* bf16_variable = "TROUPE_BF16";
constexpr const char* mark_of_jobs = "training_job"; // the key of no other request
constexpr const char* course_of_rate = "course of the rate"; // 0: all steps

void add_model(const model_options& model, fact_map& to) {
  to["--model"] = model.model;
  to["--precision"] = model.stored == precision::bf16 ? "bf16" : "fp32";
  const bool has_blocks = model.model == "gpt" || model.model == "moe";
  if (has_blocks || model.model == "mlp") {
    to["--layers"] = std::to_string(model.layers);
    to["--d-model"] = std::to_string(model.width);
  }
  if (!has_blocks)
    return;
  to["--heads"] = std::to_string(model.heads);
  to["--seq"] = std::to_string(model.length);
  to["--vocab"] = std::to_string(model.words);
  if (model.tied)
    to["--tied"] = "true";
  if (model.model != "moe")
    return;
  const auto& e = model.experts;
  to["--experts"] = std::to_string(e.count);
  to["--expert-top-k"] = std::to_string(e.chosen);
  to["--capacity"] = exact_text(e.capacity);
  to["--balance"] = exact_text(e.balance);
  to["--gate-noise"] = exact_text(e.noise);
  if (e.noise > 0)
    to["seed of gates"] = std::to_string(e.seed);
  if (e.shared)
    to["--shared-expert"] = "true";
}

/// A checksum of a schedule: the actions of all ranks in the first batches, the
/// versions that all forwards read, and the other values. A local rule has no list of
/// actions.
std::string order_text(const schedule& sch, const shape& dims) {
  std::string text{sch.weights.name};
  for (const int number :
       {static_cast<int>(sch.recomputes), static_cast<int>(sch.eager),
        static_cast<int>(sch.sums_in_any_order), static_cast<int>(sch.streams),
        static_cast<int>(sch.splits_backward), static_cast<int>(sch.repeats),
        sch.update_every, sch.most_held, sch.active_keys().value_or(0)})
    text += " " + std::to_string(number);
  running_checksum sum;
  sum.add(std::as_bytes(std::span{text}));
  if (!sch.local_rule()) {
    constexpr std::int64_t most_passes = 1 << 20;
    auto first = dims;
    first.steps = static_cast<int>(std::clamp<std::int64_t>(
      most_passes / (std::int64_t{dims.stages} * dims.microbatches), 1, dims.steps));
    const auto actions =
      write_schedule(sch, validation_error(sch, first).empty() ? first : dims);
    sum.add(std::as_bytes(std::span{actions}));
  }
  std::vector<int> versions(static_cast<std::size_t>(dims.microbatches));
  for (int s = 0; s < dims.stages && sch.weights.reads; ++s)
    for (int k = 0; k < dims.total(); k += dims.microbatches) {
      for (int m = 0; m < dims.microbatches; ++m)
        versions[static_cast<std::size_t>(m)] =
          sch.weights.reads(dims, s, k + m, update_size(sch, dims));
      sum.add(std::as_bytes(std::span{versions}));
    }
  return sch.name + ", XXH3 " + text_of_sum(sum.value());
}

/// The names and dims of a network's parameters.
std::string parameters_text(const network<float>& whole) {
  std::string result;
  for (const auto& layer : whole.layers)
    for (const auto& p : layer->parameters()) {
      result += (result.empty() ? "" : ", ") + p.name;
      for (const auto size : p.dims)
        result += " " + std::to_string(size);
    }
  return result;
}

/// The value of a key; empty if there is none.
std::string value_in(const fact_map& facts, const std::string& name) {
  const auto entry = facts.find(name);
  return entry == facts.end() ? "" : entry->second;
}

/// The name of a value in checkpoints.change: "lr" for "--lr", "clip" for "clip of".
std::string change_name(std::string_view fact) {
  const auto name = fact.substr(fact.starts_with("--") ? 2 : 0);
  return std::string{name.substr(0, name.find(' '))};
}

/// Values of the network, which a resumed training keeps.
bool is_of_network(std::string_view fact) {
  const auto facts = {"--model", "--layers",  "--d-model", "--heads",        "--seq",
                      "--vocab", "--experts", "--tied",    "--shared-expert"};
  return std::ranges::find(facts, fact) != facts.end();
}

/// True if `change` lists a name.
bool has_name(const std::string& change, const std::string& name) {
  return ("," + change + ",").find("," + name + ",") != std::string::npos;
}

} // namespace

fact_map facts_of(const training_job& job, const run_plan& plan) {
  const auto& o = job.optimizer;
  fact_map result{{"--optimizer", text_of(o)},
                  {"--lr", exact_text(o.rate)},
                  {"--lr-schedule", text_of(o.schedule)},
                  {course_of_rate, std::to_string(o.schedule.course)},
                  {"--momentum", exact_text(o.momentum)},
                  {"--betas", exact_text(o.beta1) + "," + exact_text(o.beta2)},
                  {"--eps", exact_text(o.epsilon)},
                  {"--weight-decay", exact_text(o.weight_decay)},
                  {"--decay", o.decay_only_matrices ? "matrices" : "all"},
                  {"--clip", exact_text(o.clip)},
                  {"--batch", std::to_string(job.batch)},
                  {"--compress", job.compress.empty() ? "none" : job.compress},
                  {"--sequence-lengths", joined(job.uneven.lengths)},
                  {"--steps", std::to_string(job.steps)},
                  {"--seed", std::to_string(job.seed)},
                  {"user_exchange", job.user_exchange ? "yes" : "no"}};
  if (o.clip > 0)
    result["clip of"] = o.scope == clip_scope::stage ? "stage" : "network";
  if (depends_on_microbatches(plan)) {
    result["--microbatches"] = std::to_string(job.microbatches);
    result["--microbatch-sizes"] = joined(uneven_sizes(plan));
  }
  if (makes_bf16_by_cpu(plan))
    if (const auto path = chosen_bf16_path())
      result[bf16_variable] = paths_of(sums_of(*path));
  if (const auto* const model = std::get_if<model_options>(&job.model))
    add_model(*model, result);
  return result;
}

std::string job_text(const training_job& job, const run_plan& plan) {
  auto facts = facts_of(job, plan);
  facts[mark_of_jobs] = "yes";
  facts["schedule"] = order_text(plan.sch, plan.dims);
  const auto& whole = plan.work->whole;
  facts["parameters"] = parameters_text(whole);
  facts["predictions"] = std::to_string(whole.rows) + " of "
                         + std::to_string(whole.classes) + " classes, of "
                         + (whole.reads_tokens ? "tokens" : "values");
  facts["exchange"] = plan.exchange ? plan.exchange->name : "none";
  facts["replicas"] = std::to_string(job.replicas);
  facts["stages"] = std::to_string(job.stages);
  facts["tensor"] = std::to_string(job.tensor);
  facts["expert"] = std::to_string(job.expert);
  facts["sequence_parallel"] = job.sequence_parallel ? "true" : "false";
  facts["recomputed_units"] = std::to_string(job.recomputed_units);
  facts["split"] = joined(plan.work->first_layers);
  facts["microbatches"] = std::to_string(job.microbatches);
  facts["sizes of microbatches"] = joined(uneven_sizes(plan));
  facts["device"] = job.device;
  facts["stall_timeout"] = std::to_string(job.stall_timeout.count()) + " ms";
  using errors = nlohmann::json::error_handler_t;
  return nlohmann::json(facts).dump(-1, ' ', false, errors::replace);
}

bool is_job_text(const std::string& text) {
  const auto facts = nlohmann::json::parse(text, nullptr, false);
  return facts.is_object() && facts.contains(mark_of_jobs);
}

std::string job_difference(const std::string& leader_text,
                           const std::string& node_text) {
  if (!is_job_text(leader_text))
    return "the leader's request describes no training_job: start the node by the "
           "program that leads, or run ./troupe node for programs of troupe";
  const auto leader = nlohmann::json::parse(leader_text);
  const auto node = nlohmann::json::parse(node_text);
  const auto value = [](const nlohmann::json& facts, const std::string& name) {
    const auto entry = facts.find(name);
    return entry != facts.end() && entry->is_string() ? entry->get<std::string>()
                                                      : "no value";
  };
  std::vector<std::string> names;
  for (const auto* const facts : {&node, &leader})
    for (const auto& [name, ignored] : facts->items())
      names.push_back(name);
  // These texts differ if a simpler value does.
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) {
    return name != "schedule" && name != "parameters" && name != "split"; // clang 14
  });
  constexpr std::size_t longest = 200; // characters of a value in the sentence
  for (const auto& name : names)
    if (const auto asked = value(leader, name), own = value(node, name); asked != own)
      return "the leader's job has " + name.substr(0, longest) + " "
             + asked.substr(0, longest) + ", and the node's job has "
             + own.substr(0, longest)
             + (name == bf16_variable ? ": set TROUPE_BF16 to one path for both"
                                      : ": give both the same job");
  return {};
}

std::string change_error(const std::string& change, const fact_map& now) {
  std::string allowed = "data";
  for (const auto& [fact, ignored] : now)
    if (!is_of_network(fact) && fact != "--batch"
        && !has_name(allowed, change_name(fact)))
      allowed += "," + change_name(fact);
  for (std::size_t begin = 0; begin < change.size();) {
    const auto end = std::min(change.find(',', begin), change.size());
    const auto name = change.substr(begin, end - begin);
    if (name.empty() || !has_name(allowed, name))
      return "checkpoints.change has the name '" + name + "': " + allowed
             + " are allowed";
    begin = end + 1;
  }
  return {};
}

std::string changed_fact(const training_facts& recorded, const training_facts& now,
                         const std::string& change) {
  const auto follows_cosine = [](const fact_map& facts) {
    return value_in(facts, "--lr-schedule").starts_with("cosine")
           && (!facts.contains(course_of_rate) || facts.at(course_of_rate) == "0");
  };
  const bool counts_steps =
    follows_cosine(recorded.options) && follows_cosine(now.options);
  for (const auto& [fact, had] : recorded.options) {
    const auto current = now.options.find(fact);
    if (current == now.options.end() || current->second == had || fact == "--data"
        || (fact == "--steps" && !counts_steps) || has_name(change, change_name(fact)))
      continue;
    const auto difference = fact + " " + had + ", and the job has " + current->second;
    if (is_of_network(fact))
      return difference
             + ": set the checkpoint's value, as a resumed training keeps its network";
    return difference + ": set the checkpoint's value, or name " + change_name(fact)
           + " in checkpoints.change";
  }
  for (const char* flag : {"--tied", "--shared-expert"}) // absent: not set
    if (recorded.options.contains("--model") && now.options.contains("--model")
        && recorded.options.contains(flag) != now.options.contains(flag))
      return std::string{recorded.options.contains(flag) ? "" : "no "} + flag
             + ", and the job differs: a resumed training keeps its network";
  if (recorded.data && now.data && *recorded.data != *now.data
      && !has_name(change, "data"))
    return "the data '" + to_string(*recorded.data) + "', and the job has '"
           + to_string(*now.data)
           + "': give that data, or name data in checkpoints.change";
  return {};
}

} // namespace troupe
