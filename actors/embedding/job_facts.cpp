// SPDX-License-Identifier: BSD-3-Clause
#include "actors/embedding/job_facts.hpp"

#include "kernels/bf16_choice.hpp"
#include "kernels/checksum.hpp"
#include "models/optimizer_catalog.hpp"
#include "schedules/files/schedule_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

namespace troupe {

namespace {

std::string number_text(double value) { // the shortest text of the same number
  std::array<char, 32> text{};
  return {text.data(),
          std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string rates_text(const rate_schedule& course) {
  return std::string{course.cosine ? "cosine" : "constant"}
         + (course.warmup > 0 ? ",warmup=" + std::to_string(course.warmup) : "")
         + (course.floor > 0 ? ",floor=" + number_text(course.floor) : "");
}

/// A checksum of the actions of all ranks, of the first batches of a long run. The name
/// and the bound of a local rule, which has no list of actions.
std::string order_text(const schedule& sch, shape dims) {
  if (const auto keys = sch.active_keys())
    return sch.name + ", " + std::to_string(*keys) + " active keys";
  constexpr int most_steps = 16;
  auto first = dims;
  first.steps = std::min(dims.steps, most_steps);
  if (!validation_error(sch, first).empty())
    first = dims;
  const auto text = write_schedule(sch, first);
  running_checksum sum;
  sum.add(std::as_bytes(std::span{text}));
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

} // namespace

std::map<std::string, std::string> facts_of(const training_job& job) {
  const auto& o = job.optimizer;
  std::map<std::string, std::string> result{
    {"--optimizer", text_of(o)},
    {"--lr", number_text(o.rate)},
    {"--lr-schedule", rates_text(o.schedule)},
    {"--momentum", number_text(o.momentum)},
    {"--betas", number_text(o.beta1) + "," + number_text(o.beta2)},
    {"--eps", number_text(o.epsilon)},
    {"--weight-decay", number_text(o.weight_decay)},
    {"--decay", o.decay_only_matrices ? "matrices" : "all"},
    {"--clip", number_text(o.clip)},
    {"--batch", std::to_string(job.batch)},
    {"--microbatches", std::to_string(job.microbatches)},
    {"--compress", job.compress.empty() ? "none" : job.compress},
    {"--steps", std::to_string(job.steps)},
    {"--seed", std::to_string(job.seed)}};
  if (o.clip > 0)
    result["clip of"] = o.scope == clip_scope::stage ? "stage" : "network";
  const auto* const model = std::get_if<model_options>(&job.model);
  if (model == nullptr)
    return result;
  result["--model"] = model->model;
  result["--precision"] = model->stored == precision::bf16 ? "bf16" : "fp32";
  if (model->model == "gpt" || model->model == "moe" || model->model == "mlp")
    result["--layers"] = std::to_string(model->layers),
    result["--d-model"] = std::to_string(model->width);
  if (model->model != "gpt" && model->model != "moe")
    return result;
  result["--heads"] = std::to_string(model->heads);
  result["--seq"] = std::to_string(model->length);
  result["--vocab"] = std::to_string(model->words);
  if (model->tied)
    result["--tied"] = "true";
  if (const auto& e = model->experts; model->model == "moe") {
    result["--experts"] = std::to_string(e.count);
    result["--expert-top-k"] = std::to_string(e.chosen);
    result["--capacity"] = number_text(e.capacity);
    result["--balance"] = number_text(e.balance);
    result["--gate-noise"] = number_text(e.noise);
    if (e.shared)
      result["--shared-expert"] = "true";
  }
  return result;
}

std::string job_text(const training_job& job, const run_plan& plan) {
  auto facts = facts_of(job);
  facts["schedule"] = order_text(plan.sch, plan.dims);
  facts["parameters"] = parameters_text(plan.work->whole);
  facts["exchange"] = plan.exchange ? plan.exchange->name : "none";
  facts["replicas"] = std::to_string(job.replicas);
  facts["stages"] = std::to_string(job.stages);
  facts["tensor"] = std::to_string(job.tensor);
  facts["expert"] = std::to_string(job.expert);
  facts["sequence_parallel"] = job.sequence_parallel ? "true" : "false";
  facts["recomputed_units"] = std::to_string(job.recomputed_units);
  facts["split"] = nlohmann::json(plan.work->first_layers).dump();
  facts["uneven"] = nlohmann::json{job.uneven.samples, job.uneven.lengths}.dump();
  facts["device"] = job.device;
  facts["stall_timeout"] = std::to_string(job.stall_timeout.count()) + " ms";
  if (plan.work.stored() == precision::bf16 && job.device == "cpu")
    if (const auto path = chosen_bf16_path())
      facts["TROUPE_BF16"] = paths_of(sums_of(*path));
  using errors = nlohmann::json::error_handler_t;
  return nlohmann::json(facts).dump(-1, ' ', false, errors::replace);
}

std::string job_difference(const std::string& leader_text,
                           const std::string& node_text) {
  const auto leader = nlohmann::json::parse(leader_text, nullptr, false);
  const auto node = nlohmann::json::parse(node_text);
  if (!leader.is_object())
    return "the leader's request describes no training_job: start the node by the "
           "program that leads, or run ./troupe node for programs of troupe";
  const auto value = [](const nlohmann::json& facts, const std::string& name) {
    const auto entry = facts.find(name);
    return entry != facts.end() && entry->is_string() ? entry->get<std::string>()
                                                      : "no value";
  };
  constexpr std::size_t longest = 200; // characters of a value in the sentence
  for (const auto* const facts : {&node, &leader})
    for (const auto& [name, ignored] : facts->items())
      if (const auto asked = value(leader, name), own = value(node, name); asked != own)
        return "the leader's job has " + name.substr(0, longest) + " "
               + asked.substr(0, longest) + ", and the node's job has "
               + own.substr(0, longest) + ": give both the same job";
  return {};
}

std::string changed_fact(const training_facts& recorded, const training_facts& now,
                         const std::string& change) {
  const auto may_change = [&](const std::string& name) {
    return ("," + change + ",").find("," + name + ",") != std::string::npos;
  };
  for (const auto& [option, had] : recorded.options) {
    const auto current = now.options.find(option);
    const auto name = option.starts_with("--") ? option.substr(2) : option;
    if (current != now.options.end() && current->second != had && option != "--steps"
        && !may_change(name))
      return option + " " + had + ", and the job has " + current->second
             + ": set the checkpoint's value, or name " + name
             + " in checkpoints.change";
  }
  if (recorded.data && now.data && *recorded.data != *now.data && !may_change("data"))
    return "the data '" + to_string(*recorded.data) + "', and the job has '"
           + to_string(*now.data)
           + "': give that data, or name data in checkpoints.change";
  return {};
}

} // namespace troupe
