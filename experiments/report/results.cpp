// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/results.hpp"

#include "actors/run/timing.hpp"
#include "experiments/options/run_options.hpp"
#include "experiments/report/expert_report.hpp"
#include "experiments/report/other_programs.hpp"
#include "experiments/report/seconds.hpp"
#include "kernels/bf16_choice.hpp"
#include "kernels/version.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

json number(std::optional<double> x) {
  return x && std::isfinite(*x) ? json(*x) : json(nullptr);
}

/// One number for each loss; null where a number is unknown, or instead of the list if
/// none is known.
json beside_losses(const std::vector<double>& numbers,
                   const loss_history::series& losses) {
  if (numbers.empty())
    return nullptr;
  auto result = json::array();
  for (std::size_t i = 0; i < losses.loss.size(); ++i)
    result.push_back(i < numbers.size() ? number(numbers[i]) : json(nullptr));
  return result;
}

json score_json(const std::optional<score>& s) {
  return {{"loss", number(s ? std::optional{s->loss} : std::nullopt)},
          {"accuracy", number(s ? s->accuracy : std::nullopt)}};
}

json parameters_json(const run_request& request) {
  auto result = json::object();
  for (const auto& [key, value] : request.parameters)
    result[key] = value;
  return result;
}

/// Steps before the first start in this command.
/// \param losses of the run
int steps_before(const run_account& run, const loss_history::series& losses) {
  const auto& plan = run.request->plan;
  return run.losses_of_all_starts
           ? static_cast<int>(losses.samples_before / plan.work->batch)
           : plan.dims.batches_before;
}

/// "cpu", "cuda", or "cpu and cuda".
std::string devices_of(const run_plan& plan) {
  if (plan.machine.mixes_processors(plan.ranks()))
    return "cpu and cuda";
  return plan.machine.processor_of(0).is_gpu() ? "cuda" : "cpu";
}

const char* precision_of(const run_plan& plan) {
  if (plan.work.stored() == precision::bf16)
    return "bf16";
  for (int rank = 0; rank < plan.ranks(); ++rank)
    if (plan.machine.processor_of(rank).tf32)
      return "tf32";
  return "fp32";
}

/// The value of TROUPE_BF16 for the path of the CPU's products; null if the CPU
/// computes none.
json bf16_path_of(const run_plan& plan) {
  if (!makes_bf16_by_cpu(plan))
    return nullptr;
  const auto path = chosen_bf16_path();
  return path ? json(to_text(*path)) : json(nullptr);
}

/// The libraries of the first GPU of the run; null without products of bf16 on a GPU.
/// All GPUs of a run are of one kind. Libraries are null if the GPU is elsewhere.
json gpu_libraries_of(const run_plan& plan) {
  const auto gpu = std::ranges::find_if(plan.machine.processors, &processor::is_gpu);
  if (gpu == plan.machine.processors.end() || plan.work.stored() != precision::bf16)
    return nullptr;
  const auto used = libraries_of(*gpu);
  const auto known = [](const std::string& text) {
    return text.empty() ? json(nullptr) : json(text);
  };
  return {{"epilogues", known(used.epilogues)}, {"attention", known(used.attention)}};
}

/// The value of --recompute.
std::string recompute_of(const run_plan& plan) {
  if (!plan.recomputes())
    return "none";
  const auto extent = plan.recomputed_units > 0
                        ? "blocks=" + std::to_string(plan.recomputed_units)
                        : "stage";
  return extent + (plan.sch.recomputes == recomputation::ahead ? ",ahead" : "");
}

/// For each use of memory, the largest number of bytes that each rank held.
json peaks_json(const run_result& r) {
  if (r.peak_parts.empty())
    return nullptr;
  auto result = json::object();
  for (const auto& [name, use] : {std::pair{"parameters", memory_use::parameters},
                                  {"gradients", memory_use::gradients},
                                  {"optimizer", memory_use::optimizer},
                                  {"activations", memory_use::activations},
                                  {"passing", memory_use::passing},
                                  {"checkpoint", memory_use::checkpoint}}) {
    auto& peaks = result[name] = json::array();
    for (const auto& rank : r.peak_parts)
      peaks.push_back(rank[static_cast<std::size_t>(use)]);
  }
  return result;
}

json verification_json(const verification& v) {
  auto proofs = json::array();
  for (const auto& p : v.proofs)
    proofs.push_back(
      {{"proof", p.name}, {"verdict", name_of(p.outcome)}, {"detail", p.detail}});
  return {{"steps", v.steps},
          {"holds", v.holds()},
          {"proofs", std::move(proofs)},
          {"failure", v.failure.empty() ? json(nullptr) : json(v.failure)},
          {"sentence", v.sentence()}};
}

/// When the training reached a loss; null without --target-loss.
json target_json(const run_account& run, std::optional<double> target) {
  if (!target || !run.request->plan.work)
    return nullptr;
  const auto reached = first_at(run.curve(), *target, window_of(run));
  return {{"loss", *target},
          {"samples", reached ? json(reached->samples) : json(nullptr)},
          {"seconds", number(reached ? reached->seconds : std::nullopt)}};
}

/// The loss after the shortest time of all runs; null if that is unknown.
json shortest_json(const run_account& run, std::optional<double> shortest) {
  if (!shortest || !run.request->plan.work)
    return nullptr;
  return {{"seconds", *shortest},
          {"loss", number(loss_after(run.curve(), *shortest, window_of(run)))}};
}

/// \param shortest shortest_time() of all runs
json run_json(const run_account& run, const options& o,
              std::optional<double> shortest) {
  const auto& plan = run.request->plan;
  const auto& r = run.result;
  const auto losses = run.losses();
  const bool has_times = !r.loss_times.empty() && !run.losses_of_all_starts;
  auto evaluations = json::array();
  for (const auto& [step, s] : run.evaluations) {
    auto entry = score_json(s);
    entry["steps"] = step.count;
    entry["samples"] = samples_after(step, plan).count;
    evaluations.push_back(std::move(entry));
  }
  json result{
    {"schedule", plan.sch.name},
    {"parameters", parameters_json(*run.request)},
    {"options", plan.work ? json(plan.work->options) : json(nullptr)},
    {"ending", name_of(run.outcome())},
    {"clock", run.virtual_time() ? "virtual" : "real"},
    {"device", plan.work ? devices_of(plan) : "none"},
    {"precision", precision_of(plan)},
    {"bf16_path", bf16_path_of(plan)},
    {"timing", name_of(run.timing())},
    {"stages", plan.dims.stages},
    {"ranks", plan.ranks()},
    {"pipeline_ranks", plan.ranks_of_pipeline()},
    {"replicas", plan.replicas()},
    {"exchange", plan.mesh[axis::data] > 1 ? json(plan.exchange->name) : json(nullptr)},
    {"compress", plan.mesh[axis::data] > 1 ? json(plan.exchange->compression->name)
                                           : json(nullptr)},
    {"tensor", plan.mesh[axis::tensor]},
    {"sequence_parallel", plan.sequence_parallel},
    {"expert", plan.mesh[axis::expert]},
    {"recompute", recompute_of(plan)},
    {"microbatches", plan.batches().microbatches},
    {"microbatch_sizes", plan.uneven ? json(plan.uneven->samples) : json(nullptr)},
    {"sequence_lengths", plan.uneven ? json(plan.uneven->lengths) : json(nullptr)},
    {"steps", last_step(plan).count},
    {"steps_before", steps_before(run, losses)},
    {"steps_before_last_start", plan.dims.batches_before},
    {"samples", plan.work ? json(run.samples()) : json(nullptr)},
    {"updates", r.updates.empty() ? json(nullptr) : json(r.updates)},
    // Wall time would differ in each run, but virtual runs give the same results byte
    // for byte.
    {"seconds", run.virtual_time() ? json(nullptr) : json(r.seconds)},
    {"samples_per_second", number(run.samples_per_second())},
    {"tokens_per_second", number(run.tokens_per_second())},
    {"makespan", seconds_of(r.sums.makespan)},
    {"busy", seconds_of(r.sums.busy)},
    {"idle", seconds_of(r.sums.idle())},
    {"bubble", r.sums.bubble()},
    {"bubble_ideal", r.sums.bubble_ideal()},
    {"span_idle", seconds_of(r.sums.span_idle)},
    {"other_programs", other_programs_json(plan, r, run.modelled)},
    {"peak_activations", r.sums.peak_activations},
    {"peak_bytes", plan.work ? json(r.peak_bytes) : json(nullptr)},
    {"peak_bytes_of", peaks_json(r)},
    {"bytes_moved",
     {{"pipeline", r.bytes_moved[0]},
      {"gradients", r.bytes_moved[1]},
      {"parameters", r.bytes_moved[2]},
      {"tensor", r.bytes_moved[3]},
      {"experts", r.bytes_moved[4]},
      {"tied", r.bytes_moved[5]}}},
    {"gpu_groups", plan.machine.has_gpus()
                     ? json{{"count", r.gpu_groups}, {"absence", r.ungrouped_reason}}
                     : json(nullptr)},
    {"gpu_libraries", gpu_libraries_of(plan)},
    {"sums", {{"messages", r.summed}, {"beside_work", r.summed_at_work}}},
    {"weight_versions", r.sums.weight_versions},
    {"staleness", {{"max", r.sums.max_staleness}, {"mean", r.sums.mean_staleness}}},
    {"exchange_staleness",
     r.exchange.max.empty() ? json(nullptr)
                            : json{{"max", r.exchange.max}, {"mean", r.exchange.mean}}},
    {"loss", plan.work ? json(losses.loss) : json(nullptr)},
    {"loss_samples", plan.work ? json(losses.samples) : json(nullptr)},
    {"loss_seconds", has_times ? json(seconds_of(r.loss_times)) : json(nullptr)},
    {"loss_every", plan.work ? json(losses.every) : json(nullptr)},
    {"gradient_norms",
     beside_losses(run.losses_of_all_starts ? std::vector<double>{} : r.gradient_norms,
                   losses)},
    {"learning_rates",
     beside_losses(run.losses_of_all_starts ? std::vector<double>{} : r.learning_rates,
                   losses)},
    {"target", target_json(run, o.evaluation.target)},
    {"after_shortest", shortest_json(run, shortest)},
    {"verified", run.proved ? verification_json(*run.proved) : json(nullptr)},
    {"evaluation", score_json(run.evaluated)},
    {"evaluations", std::move(evaluations)},
    {"experts", experts_json(plan, r.loads)},
  };
  if (r.outcome == ending::failed) {
    for (const char* unknown :
         {"makespan", "busy", "idle", "bubble", "bubble_ideal", "span_idle",
          "peak_activations", "weight_versions", "staleness", "exchange_staleness"})
      result[unknown] = nullptr;
    result["failure"] = r.failure;
  }
  return result;
}

} // namespace

std::string verified_json(const options& o, const std::vector<verified_run>& runs) {
  auto proved = json::array();
  for (const auto& [text, schedule, found] : runs) {
    json run{{"run", text}, {"schedule", schedule}, {"ending", name_of(found.outcome)}};
    run.update(verification_json(found));
    proved.push_back(std::move(run));
  }
  const json result{{"command", o.output.command},
                    {"troupe", version()},
                    {"seed", o.data.seed},
                    {"runs", std::move(proved)}};
  return json_text(result, 2) + "\n";
}

std::string results_json(const options& o, const setup& shared,
                         const std::vector<run_account>& runs) {
  const bool trains(shared.runs.front().plan.work);
  const auto& m = shared.model;
  json model = nullptr, data = nullptr;
  if (trains && (m.model == "gpt" || m.model == "moe"))
    model = {{"name", m.model},  {"layers", m.layers}, {"d_model", m.width},
             {"heads", m.heads}, {"seq", m.length},    {"vocab", m.words},
             {"tied", m.tied}};
  else if (trains && m.model == "mlp")
    model = {{"name", m.model}, {"layers", m.layers}, {"d_model", m.width}};
  else if (trains)
    model = {{"name", m.model}};
  if (trains && m.model == "moe")
    model["experts"] = {
      {"count", m.experts.count},       {"top_k", m.experts.chosen},
      {"capacity", m.experts.capacity}, {"balance", m.experts.balance},
      {"gate_noise", m.experts.noise},  {"shared", m.experts.shared}};
  if (trains) {
    model["parameters"] = shared.runs.front().plan.work->whole.values();
    data = {{"name", o.data.name},
            {"description", shared.data},
            {"batch", shared.runs.front().plan.work->batch},
            {"evaluates_training_data", shared.evaluates_training_data},
            {"loss_floor", number(shared.loss_floor)}};
  }
  json result{{"troupe", version()},   {"command", o.output.command},
              {"model", model},        {"data", data},
              {"seed", o.data.seed},   {"data_seed", nullptr},
              {"init_seed", nullptr},  {"resumed_from", nullptr},
              {"runs", json::array()}, {"left_out", json::array()}};
  if (trains) {
    result["data_seed"] = o.data.seed_of_data();
    result["init_seed"] = o.data.seed_of_weights();
  }
  if (!shared.checkpoint.empty())
    result["resumed_from"] = shared.checkpoint;
  const auto shortest = shortest_time(runs);
  for (const auto& run : runs)
    result["runs"].push_back(run_json(run, o, shortest));
  for (const auto& [text, why] : shared.left_out)
    result["left_out"].push_back({{"schedule", text}, {"why", why}});
  for (auto i = runs.size(); i < shared.runs.size(); ++i)
    result["left_out"].push_back(
      {{"schedule", shared.runs[i].text}, {"why", "it had not begun"}});
  return json_text(result, 2) + "\n";
}

} // namespace troupe
