// SPDX-License-Identifier: BSD-3-Clause
#include "actors/embedding/training.hpp"

#include "actors/mail/relay.hpp"
#include "actors/mail/thrown.hpp"
#include "actors/meetings/user_meeting.hpp"
#include "actors/proof/proof.hpp"
#include "actors/run/local_run.hpp"
#include "actors/run/perform.hpp"
#include "actors/run/timing.hpp"
#include "kernels/bf16_choice.hpp"
#include "models/data/checked_data.hpp"
#include "models/evaluation.hpp"
#include "models/user_network.hpp"
#include "plan/costs.hpp"
#include "plan/stage_layers.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace troupe {

namespace {

using problem = tl::unexpected<std::string>;

tl::expected<network<float>, std::string> network_for(const training_job& job) {
  if (const auto* user_model = std::get_if<user_network>(&job.model))
    return network_of(*user_model);
  const auto& options = std::get<model_options>(job.model);
  if (options.stored == precision::bf16)
    if (const auto path = chosen_bf16_path(); !path)
      return problem{path.error()};
  return make_network<float>(options);
}

/// Returns the error in a job's numbers; empty if there is none.
std::string number_error(const training_job& job) {
  if (!job.data)
    return "a training needs data: set data to the result of open_data, or to a "
           "data_set of yours";
  for (const auto& [name, count] :
       {std::pair{"stages", std::int64_t{job.stages}},
        std::pair{"microbatches", std::int64_t{job.microbatches}},
        std::pair{"steps", std::int64_t{job.steps}},
        std::pair{"batch", std::int64_t{job.batch}},
        std::pair{"replicas", std::int64_t{job.replicas}},
        std::pair{"tensor", std::int64_t{job.tensor}},
        std::pair{"expert", std::int64_t{job.expert}}})
    if (count < 1)
      return std::string{name} + " of a job is " + std::to_string(count)
             + ": at least 1 is allowed";
  if (job.microbatches % job.replicas != 0)
    return "microbatches of a job is " + std::to_string(job.microbatches)
           + ": a multiple of replicas, " + std::to_string(job.replicas)
           + ", is allowed";
  if (job.threads < 0 || job.threads > 1024 || job.held_out < 0
      || job.stall_timeout.count() < 1)
    return "threads, held_out or stall_timeout of a job is out of range: threads are 0 "
           "to 1024, held_out is at least 0, stall_timeout at least 1 ms";
  if (job.virtual_time && job.system != nullptr)
    return "virtual_time needs an actor system of the run's own: leave system null";
  if (job.replicas == 1
      && (job.user_exchange || !job.exchange.empty() || !job.compress.empty()))
    return "one data replica exchanges no gradients: set replicas too, or leave "
           "exchange, compress and user_exchange unset";
  if (job.user_exchange && (!job.compress.empty() || job.verify))
    return "a user_exchange makes messages and sums of its own: leave compress and "
           "verify unset";
  if (!std::holds_alternative<model_options>(job.model)
      && (job.tensor > 1 || job.expert > 1))
    return "tensor and expert divide built-in models: set both to 1 for a user_network";
  if (job.user_exchange && !job.exchange.empty())
    return "a job has two exchanges: set only user_exchange, or only exchange = '"
           + job.exchange + "'";
  if (auto error = validation_error(job.optimizer); !error.empty())
    return error;
  if (job.relays && !job.relays->make)
    return "relays of a job has no function: set relays->make";
  return {};
}

/// How data replicas keep one model; absent if there is one replica.
tl::expected<std::optional<replica_exchange>, std::string>
exchange_of(const training_job& job) {
  if (job.replicas == 1)
    return std::nullopt;
  if (job.user_exchange)
    return replica_exchange{.name = "own", .idea = "the user_exchange of the job"};
  auto exchange = parse_exchange(job.exchange.empty() ? "ring" : job.exchange);
  if (!exchange)
    return problem{"exchange: " + exchange.error()};
  if (!job.compress.empty()) {
    exchange->compression = find_codec(job.compress);
    if (exchange->compression == nullptr)
      return problem{"compress: there is no compression '" + job.compress
                     + "'; there are " + codec_names()};
    if (exchange->updates != update_by::all_replicas)
      return problem{"compress needs an exchange that sums gradients, like ring: "
                     + exchange->name + " sums none"};
  }
  return std::move(*exchange);
}

tl::expected<training, std::string> work_of(const training_job& job) {
  auto whole = network_for(job);
  if (!whole)
    return problem{whole.error()};
  if (auto error = sample_shape_error(*job.data, *whole); !error.empty())
    return problem{error};
  auto first_layers =
    cut(*whole, stages_on(job.pipeline_schedule.where, job.stages), job.split);
  if (!first_layers)
    return problem{first_layers.error()};
  auto weights = initial_weights(*whole, job.seed);
  if (!job.begin.empty()) {
    auto read = weights_from(job.begin, *whole);
    if (!read)
      return problem{read.error()};
    weights = std::move(*read);
  }
  auto data = checked(job.data, *whole);
  training result{.whole = std::move(*whole),
                  .first_layers = std::move(*first_layers),
                  .data = std::move(data),
                  .batch = job.batch,
                  .optimizer = job.optimizer,
                  .weights = std::move(weights),
                  .from_values = !job.begin.empty()};
  if (job.tensor > 1) {
    auto shards = make_shards<float>(std::get<model_options>(job.model), job.tensor,
                                     job.sequence_parallel);
    if (!shards)
      return problem{shards.error()};
    result.shards = std::move(*shards);
  } else if (!result.whole.experts.empty()) {
    const auto& options = std::get<model_options>(job.model);
    result.shards.push_back(make_without_experts<float>(options));
    result.experts = options.experts;
  }
  return result;
}

/// Makes all objects of the user's exchange now, on this thread. The returned maker
/// passes each object to the first call for that stage and replica.
exchange_maker made_before(const run_plan& plan) {
  struct all_made {
    std::mutex lock;
    std::map<std::pair<int, int>, std::unique_ptr<user_exchange>> objects;
  };
  const auto store = std::make_shared<all_made>();
  for (int s = 0; s < plan.dims.stages; ++s)
    for (int r = 0; r < plan.mesh[axis::data]; ++r)
      store->objects[{s, r}] =
        made_by("the maker of " + name_of_user_meeting(s, r),
                [&] { return plan.user_exchange(user_exchange_member(plan, s, r)); });
  return [store](const exchange_member& where) {
    const std::lock_guard guard{store->lock};
    return std::move(store->objects.at({where.stage, where.replica}));
  };
}

tl::expected<run_plan, std::string> plan_of(const training_job& job) {
  if (auto error = number_error(job); !error.empty())
    return problem{error};
  auto exchange = exchange_of(job);
  if (!exchange)
    return problem{exchange.error()};
  auto work = work_of(job);
  if (!work)
    return problem{work.error()};
  const shape dims{stages_on(job.pipeline_schedule.where, job.stages),
                   job.microbatches / job.replicas, job.steps};
  if (auto error = validation_error(job.pipeline_schedule, dims, job.replicas);
      !error.empty())
    return problem{error};
  run_plan plan;
  plan.sch = job.pipeline_schedule;
  plan.dims = dims;
  plan.mesh[axis::data] = job.replicas;
  plan.mesh[axis::tensor] = job.tensor;
  plan.mesh[axis::expert] = job.expert;
  plan.sequence_parallel = job.sequence_parallel;
  plan.recomputed_units = job.recomputed_units;
  if (!job.uneven.samples.empty() || !job.uneven.lengths.empty())
    plan.uneven = std::make_shared<const uneven_microbatches>(job.uneven);
  plan.exchange = std::move(*exchange);
  plan.user_exchange = job.user_exchange;
  plan.work = std::move(*work);
  plan.machine.clock = job.virtual_time ? clock_kind::virtual_time : clock_kind::real;
  plan.machine.cost = costs_by_operations();
  plan.machine.threads =
    job.threads > 0
      ? job.threads
      : static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  plan.has_relays = job.relays != nullptr;
  plan.keep.weights = true;
  plan.keep.record = job.draws;
  if (job.verify) {
    keep_for_proofs(plan);
    if (!can_be_replayed(plan))
      return problem{"hogwild cannot be verified in real time, as replicas write the "
                     "same memory: set virtual_time, or another exchange"};
  }
  plan.machine.stall_timeout = job.stall_timeout;
  plan.observed.model_times = needs_modelled_times(plan);
  const auto bytes_of_evaluation = [&](const run_plan& checked_plan) {
    caller_bytes result;
    if (job.held_out > 0)
      result.of_machine = evaluator::bytes(checked_plan.work->whole,
                                           evaluation_batch(checked_plan.work->batch),
                                           checked_plan.machine.threads)
                            .front();
    return result;
  };
  if (auto error = validation_error(plan, bytes_of_evaluation); !error.empty())
    return problem{error};
  if (job.user_exchange)
    plan.user_exchange = made_before(plan);
  return plan;
}

constexpr double second = 1e9;       // nanoseconds
constexpr int widest_picture = 4000; // characters

void copy_measures(const run_result& from, training_result& to) {
  const auto& sums = from.sums;
  to.makespan = static_cast<double>(sums.makespan) / second;
  to.bubble = sums.bubble();
  for (const auto idle : sums.idle())
    to.idle.push_back(static_cast<double>(idle) / second);
  to.peak_activations = sums.peak_activations;
  to.weight_versions = sums.weight_versions;
  to.staleness = sums.max_staleness;
  to.peak_bytes = from.peak_bytes;
  to.exchanged_bytes = from.bytes_moved[static_cast<std::size_t>(traffic::gradients)];
}

std::map<std::string, trained_parameter>
by_name(const network<float>& whole, const std::vector<std::vector<float>>& buckets) {
  std::map<std::string, trained_parameter> result;
  for (std::size_t i = 0; i < buckets.size(); ++i)
    for (const auto& p : whole.layers[i]->parameters()) {
      const auto first = buckets[i].begin() + p.offset;
      result[p.name] = {p.dims, {first, first + p.values()}};
    }
  return result;
}

/// Evaluates on held-out samples. An error makes the result a failure with the error's
/// text.
void evaluate(const training_job& job, const run_plan& plan, const run_result& run,
              const training_news& news, training_result& to) {
  try {
    evaluator judge{plan.work->whole, *plan.work->data, job.held_out,
                    evaluation_batch(job.batch), plan.machine.threads};
    if (judge.samples() <= 0)
      return;
    if (const auto measured =
          judge.evaluate(readable(run.parameters), news.interrupted)) {
      to.held_out_loss = measured->loss;
      to.accuracy = measured->accuracy;
    }
  } catch (...) {
    to.outcome = ending::failed;
    to.failure = "evaluation: " + text_of(std::current_exception());
  }
}

/// Proves a finished run. A proof that fails makes the result a failure.
void verify(const run_plan& plan, const run_result& run, training_result& to) {
  for (auto& proof : prove(plan, run)) {
    if (proof.fails() && to.outcome != ending::failed) {
      to.outcome = ending::failed;
      to.failure = "verify: " + proof.name + ": " + proof.detail;
    }
    to.proofs.push_back(
      {std::move(proof.name), !proof.fails(), std::move(proof.detail)});
  }
}

} // namespace

tl::expected<training_result, std::string> train(const training_job& job,
                                                 const training_news& news) {
  const auto planned = [&]() -> tl::expected<run_plan, std::string> {
    try {
      return plan_of(job);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const not_made& error) {
      return problem{error.what()};
    } catch (...) { // thrown by objects that the job brings
      return problem{"before the run: " + text_of(std::current_exception())};
    }
  }();
  if (!planned)
    return problem{planned.error()};
  const auto& plan = *planned;
  auto result = perform(plan, {.report = news.report,
                               .relays = job.relays,
                               .system = job.system,
                               .interrupted = news.interrupted});
  training_result summary{.outcome = result.outcome,
                          .failure = std::move(result.failure),
                          .loss = result.loss,
                          .loss_samples = result.loss_samples,
                          .samples = result.samples,
                          .seconds = result.seconds,
                          .modelled = plan.observed.model_times};
  summary.stuck = is_at_work();
  if (summary.outcome == ending::failed)
    return summary;
  copy_measures(result, summary);
  if (job.draws)
    summary.picture = draw(timeline_of(result.actions), widest_picture);
  if (const auto which = not_finite(plan.work->whole, readable(result.parameters));
      !result.parameters.empty() && !which.empty()) {
    summary.outcome = ending::failed;
    summary.failure = "the last update has made " + which;
    return summary;
  }
  summary.parameters = by_name(plan.work->whole, result.parameters);
  if (!result.odd_stage.empty()) {
    summary.outcome = ending::failed;
    summary.failure =
      result.odd_stage + " ended with parameters that differ from replica 0's";
    if (job.user_exchange)
      summary.failure += ": a user_exchange must leave the same values in all data "
                         "replicas";
    return summary;
  }
  if (job.verify && summary.outcome == ending::finished)
    verify(plan, result, summary);
  if (job.held_out > 0 && !result.parameters.empty())
    evaluate(job, plan, result, news, summary);
  return summary;
}

std::string save(const training_result& result, const training_job& job,
                 const std::filesystem::path& to) {
  if (result.parameters.empty())
    return "no parameters can be saved, as the training "
           + (result.failure.empty() ? "kept no parameters"
                                     : "failed: " + result.failure);
  const auto whole = network_for(job);
  if (!whole)
    return whole.error();
  std::vector<std::vector<float>> buckets;
  for (const auto& l : whole->layers) {
    auto& bucket = buckets.emplace_back(static_cast<std::size_t>(l->bucket()));
    for (const auto& p : l->parameters()) {
      const auto entry = result.parameters.find(p.name);
      if (entry == result.parameters.end() || entry->second.dims != p.dims
          || std::ssize(entry->second.values) != p.values())
        return "parameters of the result do not fit the job's model: '" + p.name
               + "' is missing, or has other dims";
      std::ranges::copy(entry->second.values, bucket.begin() + p.offset);
    }
  }
  return save_weights(to, *whole, readable(buckets));
}

} // namespace troupe
