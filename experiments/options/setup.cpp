// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/setup.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "experiments/options/opened_data.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/options/saved_options.hpp"
#include "experiments/options/stage_advice.hpp"
#include "experiments/options/training_options.hpp"
#include "kernels/bf16_choice.hpp"
#include "models/data/checked_data.hpp"
#include "models/optimizer_catalog.hpp"
#include "models/short_text.hpp"
#include "models/user_network.hpp"
#include "plan/evaluated_parts.hpp"
#include "plan/sharding.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

namespace troupe {

namespace {

/// Whether virtual time counts operations, because no costs are given.
bool counts_operations(const options& o) {
  return o.trains && o.cost.text.empty();
}

/// The plan of every run, without its schedule and computation.
run_plan common_plan(const options& o) {
  run_plan plan;
  plan.dims = {o.mesh.stages, o.schedules.microbatches / o.mesh.data,
               o.schedules.steps};
  plan.mesh[axis::data] = o.mesh.data;
  plan.mesh[axis::tensor] = o.mesh.tensor;
  plan.mesh[axis::expert] = o.mesh.expert;
  plan.sequence_parallel = o.mesh.sequence_parallel;
  plan.recomputed_units = o.mesh.recomputed_units;
  if (const auto& uneven = o.schedules.uneven;
      !uneven.samples.empty() || !uneven.lengths.empty())
    plan.uneven = std::make_shared<const uneven_microbatches>(uneven);
  plan.exchange = o.mesh.exchange;
  plan.machine.clock = o.run.clock;
  plan.machine.stall_timeout = o.run.stall_timeout;
  plan.machine.links = o.machines.model;
  auto sizes = o.cost.sizes;
  sizes.stored = o.run.products;
  plan.work = sizes;
  plan.machine.sum_rate = o.cost.sum_rate;
  plan.machine.slowdowns = o.cost.slowdowns;
  return plan;
}

/// zb-auto with the costs of --cost, unless the schedule's own text has costs of
/// actions.
std::optional<schedule> by_costs(const options& o, const chosen_schedule& chosen) {
  const auto says = [&](const char* key) { return chosen.values.contains(key); };
  if (chosen.name != "zb-auto" || o.cost.text.empty() || says("f") || says("i")
      || says("w"))
    return {};
  std::vector<split_costs> costs;
  for (int s = 0; s < o.mesh.stages; ++s) {
    const auto& table = o.cost.actions;
    const bool repeats = o.mesh.recomputes != recomputation::none;
    costs.push_back({table.duration_of(op::forward, s),
                     table.duration_of(op::input_gradient, s)
                       + (repeats ? table.duration_of(op::recompute, s) : 0),
                     table.duration_of(op::weight_gradient, s),
                     table.duration_of(op::update, s)});
  }
  // Tensor shards divide the times of actions, but not the times of messages.
  return zb_auto(std::move(costs), chosen.sch.most_held,
                 o.cost.link.latency * o.mesh.tensor);
}

/// Completes a plan for a schedule. The schedule determines the number of stages on a
/// rank, the cut of the network and the cost of a stage. Returns one sentence about a
/// mistake, else an empty text.
std::string complete(const options& o, const chosen_schedule& chosen, run_plan& plan) {
  plan.sch = by_costs(o, chosen).value_or(chosen.sch);
  plan.sch.recomputes = o.mesh.recomputes;
  plan.dims.stages =
    chosen.sizes ? chosen.sizes->stages : stages_on(plan.sch.where, o.mesh.stages);
  if (plan.dims.stages > most_stages)
    return validation_error(plan.sch, plan.dims);
  plan.machine.cost =
    counts_operations(o)
      ? costs_by_operations()
      : costs_from(shared_by_stages(o.cost.actions, plan.sch.where, plan.dims),
                   plan.mesh[axis::tensor], state_shares(plan));
  if (!plan.work)
    return {};
  auto first_layers =
    cut(plan.work->whole, plan.dims.stages, o.mesh.split, o.mesh.unit_costs);
  if (!first_layers)
    return first_layers.error() + stage_advice(o, chosen, plan);
  plan.work->first_layers = std::move(*first_layers);
  return {};
}

/// The model, with the type of stored activations.
model_options model_of(const options& o) {
  auto result = o.model;
  result.stored = o.run.products;
  return result;
}

tl::expected<network<float>, std::string> network_of(const options& o) {
  return o.own.network ? network_of(*o.own.network) : make_network<float>(model_of(o));
}

tl::expected<std::shared_ptr<const data_set>, std::string>
data_of(const options& o, const network<float>& whole,
        const std::filesystem::path& within) {
  if (!o.own.data && !o.own.network)
    return opened_data(o, within);
  auto data = o.own.data;
  if (!data) {
    auto opened = opened_data(o, within);
    if (!opened)
      return opened;
    data = std::move(*opened);
  }
  if (auto error = sample_shape_error(*data, whole); !error.empty())
    return problem{error};
  return checked(std::move(data), whole);
}

/// Networks that stages run instead of the whole network; empty: stages run the whole
/// one.
tl::expected<std::vector<network<float>>, std::string>
shards_of(const options& o, const network<float>& whole) {
  if (o.mesh.tensor > 1)
    return make_shards<float>(model_of(o), o.mesh.tensor, o.mesh.sequence_parallel);
  std::vector<network<float>> result;
  if (!whole.experts.empty())
    result.push_back(make_without_experts<float>(model_of(o)));
  return result;
}

/// The computation of all runs, without optimizers.
/// \param within as open_data takes it
/// \param notes receives sentences on the weights
tl::expected<training, std::string> training_of(const options& o,
                                                const std::filesystem::path& within,
                                                std::vector<std::string>& notes) {
  if (auto error = own_error(o.own, o.mesh, o.run); !error.empty())
    return problem{error};
  auto whole = network_of(o);
  if (!whole)
    return problem{whole.error()};
  auto shards = shards_of(o, *whole);
  if (!shards)
    return problem{shards.error()};
  auto data = data_of(o, *whole, within);
  if (!data)
    return problem{data.error()};
  auto weights = initial_weights(*whole, o.data.seed_of_weights());
  if (!o.own.values.empty()) {
    if (auto error = values_error(o.own, *whole); !error.empty())
      return problem{error};
    weights = with_values(std::move(weights), o.own, *whole);
  }
  if (!o.data.init.empty()) {
    auto read = weights_from(o.data.init, *whole, &notes);
    if (!read)
      return problem{read.error()};
    weights = std::move(*read);
  }
  std::int64_t usual_batch = whole->reads_tokens ? 16 : 64;
  if (const auto& sizes = o.schedules.uneven.samples; !sizes.empty())
    usual_batch = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  return training{.whole = std::move(*whole),
                  .shards = std::move(*shards),
                  .experts = o.model.experts,
                  .first_layers = {},
                  .data = std::move(*data),
                  .batch = o.data.batch.value_or(usual_batch),
                  .optimizer = o.optimizer,
                  .weights = std::move(weights),
                  .from_values = !o.data.init.empty() || !o.own.values.empty()};
}

/// The number of batches in `epochs` passes over the data; the last batch may be partly
/// filled.
tl::expected<int, std::string> steps_of(double epochs, const training& work) {
  const auto epoch = work.data->epoch();
  if (!epoch)
    return problem{
      "--epochs has no effect on synthetic data, which has no end: say --steps"};
  const double exact =
    std::ceil(epochs * static_cast<double>(*epoch)
              / static_cast<double>(std::max<std::int64_t>(work.batch, 1)));
  if (!(exact >= 1 && exact <= std::numeric_limits<int>::max()))
    return problem{
      "--epochs " + short_text(epochs) + " of " + std::to_string(*epoch)
      + " samples gives too few or too many batches: 1 to 2,147,483,647 are allowed"};
  return static_cast<int>(exact);
}

/// Adds a computation to a plan. Returns one sentence about a mistake, else an empty
/// text.
std::string add_training(const options& o, const std::filesystem::path& within,
                         run_plan& plan, std::vector<std::string>& notes) {
  auto work = training_of(o, within, notes);
  if (!work)
    return work.error();
  if (o.schedules.epochs) {
    const auto steps = steps_of(*o.schedules.epochs, *work);
    if (!steps)
      return steps.error();
    plan.dims.steps = *steps;
  }
  plan.machine.threads =
    o.run.threads > 0
      ? o.run.threads
      : static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  plan.machine.processors = o.run.processors;
  if (const auto listed = std::ssize(plan.machine.processors);
      o.run.lists_processors && listed > plan.ranks())
    return "--device lists " + std::to_string(listed) + " processors for "
           + (plan.ranks() == 1 ? "one rank" : std::to_string(plan.ranks()) + " ranks")
           + ": list at most one processor for each rank";
  if (o.evaluation.samples > 0 && work->data->evaluation_size() > 0)
    plan.copies.evaluate_every = o.evaluation.every;
  plan.work = std::move(*work);
  return {};
}

/// The sentence about checkpoints of which none can be read. If an option of this run
/// differs from the network of the newest whole checkpoint, the sentence names that
/// option.
std::string unfit(const options& o, const std::string& why) {
  const auto saved = saved_run_of(o.checkpoint.resume);
  const bool is_whole = saved && check_checkpoint(saved->from);
  const auto error =
    is_whole ? other_network(saved->options, options_to_save(o)) : std::string{};
  return error.empty() ? why : saved->from + " " + error;
}

/// The end of a sentence about a checkpoint that has finished all steps of a run.
/// \param change the typed value of --change, which the advice keeps
std::string no_steps_left(const checkpoint_facts& facts, int steps,
                          const std::string& change) {
  const auto value = [&](const char* option) {
    const auto& saved = facts.training;
    return saved && saved->options.contains(option) ? saved->options.at(option) : "";
  };
  const auto done = std::to_string(facts.batches), typed = std::to_string(steps);
  const auto more = ": say --steps " + std::to_string(facts.batches + 1) + " or more";
  const auto changes = split(change, ',');
  const std::string also = value("--lr-schedule").starts_with("cosine")
                               && value("--steps") == done
                               && std::ranges::find(changes, "steps") == changes.end()
                             ? ", and --change " + (change.empty() ? "" : change + ",")
                                 + "steps, as the rate's cosine ends at that step"
                             : "";
  return value("--steps") == typed && typed == done
           ? "has finished its " + done + (steps == 1 ? " step" : " steps") + more
               + " to train on" + also
           : "was trained for " + done + " steps, and --steps " + typed
               + " counts these steps too" + more + also;
}

/// Makes a plan resume from the newest checkpoint. Returns one sentence about a
/// mistake, else an empty text.
std::string resume(const options& o, run_plan& plan, setup& to) {
  auto newest = newest_checkpoint(o.checkpoint.resume, plan.work->whole);
  std::error_code unknown;
  if (!newest)
    return "--resume: " + unfit(o, newest.error())
           + (std::filesystem::is_regular_file(o.checkpoint.resume, unknown)
                ? "; --init reads files of weights"
                : "");
  to.passed_over = newest->passed_over;
  const auto folder = newest->folder.string();
  const int batches = newest->facts.batches;
  if (auto error = batch_error(*newest, plan.work->batch); !error.empty())
    return error;
  if (plan.dims.steps <= batches && o.checkpoint.resumes_if_any) {
    to.completed = folder + " has finished " + std::to_string(batches)
                   + " steps, and the run has " + std::to_string(plan.dims.steps)
                   + ": the training is complete";
    return {};
  }
  if (plan.dims.steps <= batches)
    return "--resume: " + folder + " "
           + no_steps_left(newest->facts, plan.dims.steps, o.checkpoint.change);
  plan.dims.steps -= batches;
  resume_from(std::move(newest->saved), plan);
  to.checkpoint = folder;
  to.start_description = "continues from " + folder + ", after "
                         + std::to_string(batches)
                         + (batches == 1 ? " step" : " steps");
  to.resumed_training = newest->facts.training;
  return {};
}

/// The run of one schedule.
tl::expected<run_request, std::string>
request(const options& o, const chosen_schedule& chosen, run_plan plan,
        const std::optional<std::vector<int>>& local_ranks, const setup& shared) {
  if (auto error = complete(o, chosen, plan); !error.empty())
    return problem{error};
  if (!counts_operations(o))
    if (auto error = outlasts_clock(o.cost, plan); !error.empty())
      return problem{error};
  if (plan.work) {
    plan.work->optimizer = chosen.optimizer;
    plan.work->options = options_of_training(o, plan);
  }
  if (auto error = state_error(plan); !error.empty())
    return problem{error};
  if (shared.resumed_training)
    if (auto error = resume_error(*shared.resumed_training,
                                  {plan.work->options, plan.work->data->identity()},
                                  split(o.checkpoint.change, ','));
        !error.empty())
      return problem{"--resume: " + shared.checkpoint + " " + error};
  const auto evaluation_bytes = [&](const run_plan& checked_plan) {
    return o.evaluation.samples > 0 ? bytes_of_evaluation(checked_plan, !local_ranks)
                                    : caller_bytes{};
  };
  if (auto error = validation_error(plan, evaluation_bytes, local_ranks);
      !error.empty())
    return problem{error};
  return run_request{chosen.text, std::move(plan), chosen.values};
}

/// Adds the run of every schedule that fits. Returns one sentence if a schedule that
/// was named by itself does not fit, or if none fits.
std::string add_requests(const options& o, const run_plan& plan,
                         const std::optional<std::vector<int>>& local_ranks,
                         setup& to) {
  for (const auto& chosen : o.schedules.chosen) {
    auto run = request(o, chosen, plan, local_ranks, to);
    if (run)
      to.runs.push_back(std::move(*run));
    else if (chosen.of_all)
      to.left_out.push_back({chosen.text, run.error()});
    else
      return run.error();
  }
  return to.runs.empty() ? to.left_out.front().why : "";
}

/// Adds the note on a checkpoint in bf16 without a path, if a CPU computes bf16
/// products.
void add_note_on_bf16(setup& to) {
  const auto uses_path = [](const run_request& run) {
    return makes_bf16_by_cpu(run.plan);
  };
  if (!to.resumed_training || std::ranges::none_of(to.runs, uses_path))
    return;
  if (const auto used = chosen_bf16_path())
    if (auto note = without_bf16_path(to.checkpoint, *to.resumed_training, *used);
        !note.empty())
      to.notes.push_back(std::move(note));
}

/// The costs of actions in virtual time, for people.
std::string rates_of(const options& o) {
  if (!counts_operations(o))
    return "--cost " + o.cost.text + " (milliseconds)";
  return std::to_string(static_cast<int>(operations_a_nanosecond))
         + " operations a nanosecond on each rank, and messages take no time; --cost "
           "sets other costs";
}

} // namespace

std::string left_out_line(const setup& shared) {
  // Schedules that are left out for the same reason are joined in front of the reason.
  std::vector<std::pair<std::string, std::string>> by_reason; // reasons, and names
  for (const auto& [text, why] : shared.left_out) {
    const auto same =
      std::ranges::find(by_reason, why, &std::pair<std::string, std::string>::first);
    if (same == by_reason.end())
      by_reason.emplace_back(why, why.starts_with(text) ? "" : text);
    else
      same->second += ", " + text;
  }
  std::string result;
  for (const auto& [why, names] : by_reason)
    result += (result.empty() ? "left out: " : "; ")
              + (names.empty() ? why : names + ": " + why);
  return result;
}

tl::expected<setup, std::string> set_up(const options& o) {
  return set_up_part(o, {});
}

tl::expected<setup, std::string>
set_up_part(const options& o, const std::optional<std::vector<int>>& local_ranks) {
  return set_up_part(o, local_ranks, {});
}

tl::expected<setup, std::string>
set_up_part(const options& o, const std::optional<std::vector<int>>& local_ranks,
            const std::filesystem::path& within) {
  setup result;
  auto plan = common_plan(o);
  if (o.trains) {
    if (auto error = add_training(o, within, plan, result.notes); !error.empty())
      return problem{error};
    plan.copies.checkpoint_every = std::min(o.checkpoint.every, plan.dims.steps);
    plan.copies.keep_steps = o.nodes.keep_steps;
    if (!o.checkpoint.resume.empty())
      if (auto error = resume(o, plan, result); !error.empty())
        return problem{error};
    if (!result.completed.empty())
      return result;
    if (o.checkpoint.resume.empty() && o.checkpoint.resumes_if_any) {
      for (const auto& entry : named_entries_in(o.checkpoint.folder))
        result.passed_over.push_back(manifest_error(entry));
      result.start_description = "starts at the first step: there is no checkpoint in "
                                 + o.checkpoint.folder + " yet";
    }
    const auto& data = *plan.work->data;
    result.model = o.own.network ? plan.work->whole.options : o.model;
    result.data = data.description();
    result.loss_floor = data.loss_floor();
    result.evaluates_training_data = data.evaluates_training_data();
  }
  if (plan.machine.clock == clock_kind::virtual_time)
    result.rates = rates_of(o);
  if (auto error = add_requests(o, plan, local_ranks, result); !error.empty())
    return problem{error};
  add_note_on_bf16(result);
  return result;
}

} // namespace troupe
