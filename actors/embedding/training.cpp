// SPDX-License-Identifier: BSD-3-Clause
#include "actors/embedding/training.hpp"

#include "actors/checkpoints/checkpoint_saver.hpp"
#include "actors/embedding/job_plan.hpp"
#include "actors/mail/relay.hpp"
#include "actors/mail/thrown.hpp"
#include "actors/nodes/leader.hpp"
#include "actors/nodes/node_links.hpp"
#include "actors/proof/proof.hpp"
#include "actors/run/perform.hpp"
#include "actors/run/timing.hpp"
#include "kernels/folder_lock.hpp"
#include "kernels/version.hpp"
#include "models/evaluation.hpp"
#include "plan/evaluated_parts.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace troupe {

namespace {

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
void evaluate(const training_job& job, const run_plan& plan,
              const std::vector<const float*>& parameters, const training_news& news,
              training_result& to) {
  try {
    evaluator judge{
      plan.work->whole,     *plan.work->data,
      job.held_out,         evaluation_batch(job.batch),
      plan.machine.threads, evaluated_parts(plan, job.nodes.addresses.empty())};
    if (judge.samples() <= 0)
      return;
    if (const auto measured = judge.evaluate(parameters, news.interrupted)) {
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

using told = std::function<void(const std::string&)>;

/// Performs a job's run in this process, or on the job's nodes.
/// \param warn receives a sentence about each checkpoint that could not be written
/// \param tell receives a sentence about each node that is busy, on any thread
/// \throws the exceptions of leader and troupe::perform
run_result perform(const training_job& job, const planned_job& planned,
                   const training_news& news, const told& warn, const told& tell) {
  const auto& plan = planned.plan;
  run_callbacks callbacks{.report = news.report,
                          .relays = job.relays,
                          .system = job.system,
                          .interrupted = news.interrupted};
  std::optional<checkpoint_saver> saver;
  if (plan.copies.checkpoint_every > 0) {
    saver.emplace(planned.checkpoints, plan, warn);
    callbacks.save = [&](training_copies copies) { saver->save(std::move(copies)); };
    callbacks.await_saved = [&] { saver->wait(); };
  }
  const auto& nodes = job.nodes;
  if (nodes.addresses.empty())
    return troupe::perform(plan, std::move(callbacks));
  auto links = node_links::from(nodes.tls);
  if (!links)
    throw node_failure{links.error()};
  const cluster run_nodes{.nodes = planned.nodes,
                          .node_map = nodes.node_map,
                          .failure_timeout = nodes.failure_timeout,
                          .version = version(),
                          .connections = links->get(),
                          .interrupted = news.interrupted,
                          .on_wait = tell};
  leader node_leader{
    run_nodes,
    std::make_shared<const run_plan>(plan),
    {.options = planned.text, .session = {.session = new_identity(), .generation = 1}}};
  return troupe::perform(plan, std::move(callbacks), &node_leader);
}

/// Fills in the results of a job whose checkpoint has all steps.
void complete(const training_job& job, const planned_job& planned,
              const training_news& news, training_result& to) {
  to.steps_before = planned.complete->batches;
  to.parameters = by_name(planned.plan.work->whole, planned.complete->parameters);
  if (job.held_out > 0)
    evaluate(job, planned.plan, readable(planned.complete->parameters), news, to);
}

/// Fills in the results of a run, with proofs and the evaluation.
void summarise(const training_job& job, const run_plan& plan, run_result& result,
               const training_news& news, training_result& to) {
  to.outcome = result.outcome;
  to.failure = std::move(result.failure);
  to.loss = result.loss;
  to.loss_samples = result.loss_samples;
  to.samples = result.samples;
  to.seconds = result.seconds;
  to.modelled = plan.observed.model_times;
  if (to.outcome == ending::failed)
    return;
  copy_measures(result, to);
  if (job.draws)
    to.picture = draw(timeline_of(result.actions), widest_picture);
  if (result.parameters.empty())
    return;
  if (const auto which = not_finite(plan.work->whole, readable(result.parameters));
      !which.empty()) {
    to.outcome = ending::failed;
    to.failure = "the last update has made " + which;
    return;
  }
  to.parameters = by_name(plan.work->whole, result.parameters);
  if (!result.odd_stage.empty()) {
    to.outcome = ending::failed;
    to.failure =
      result.odd_stage + " ended with parameters that differ from replica 0's";
    if (job.user_exchange)
      to.failure += ": a user_exchange must leave the same values in all data replicas";
    return;
  }
  if (job.verify && to.outcome == ending::finished)
    verify(plan, result, to);
  if (job.held_out > 0)
    evaluate(job, plan, readable(result.parameters), news, to);
}

} // namespace

tl::expected<training_result, std::string> train(const training_job& job,
                                                 const training_news& news) {
  auto planned = plan_of(job);
  if (!planned)
    return tl::unexpected{planned.error()};
  const auto& plan = planned->plan;
  training_result result{.steps_before = plan.dims.batches_before};
  std::mutex one_at_a_time;
  const auto tell = [&](const std::string& sentence) {
    if (!news.warn)
      return;
    const std::lock_guard guard{one_at_a_time};
    try {
      news.warn(sentence);
    } catch (...) { // NOLINT(bugprone-empty-catch): the training goes on
    }
  };
  const auto warn = [&](const std::string& sentence) {
    result.warnings.push_back(sentence);
    tell(sentence);
  };
  std::ranges::for_each(planned->warnings, warn);
  if (planned->complete) {
    complete(job, *planned, news, result);
    return result;
  }
  folder_lock lock;
  if (const auto& to = planned->checkpoints; !to.folder.empty())
    if (auto error = checkpoint_folder_error(to, plan, lock); !error.empty())
      return tl::unexpected{error};
  try {
    auto performed = perform(job, *planned, news, warn, tell);
    summarise(job, plan, performed, news, result);
  } catch (const node_failure& error) {
    return tl::unexpected{std::string{error.what()}};
  } catch (const ended_while_waiting&) { // no rank has begun
    result.outcome = ending::interrupted;
  } catch (const ended_while_joining&) {
    result.outcome = ending::interrupted;
  }
  result.stuck = is_at_work();
  return result;
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
