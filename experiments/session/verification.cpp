// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/verification.hpp"

#include "actors/proof/proof.hpp"
#include "actors/proof/step_validator.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/report/results_legend.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/node_runs.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <utility>

namespace troupe {

namespace {

/// The proof that a second run, which has finished, gave the same bits.
proof again(const run_plan& plan, const run_result& first, const run_result& second) {
  const auto apart =
    between(*plan.work, {first.loss, first.parameters, first.gradients},
            {second.loss, second.parameters, second.gradients});
  return judged("again", apart.none() ? "" : apart.text(), apart.text());
}

/// Thrown when the user has ended a proof.
struct ended_proof : std::exception {};

/// Samples for the loops of a proof; throws once the user ends the program.
class samples_until_interrupted : public data_set {
public:
  explicit samples_until_interrupted(std::shared_ptr<const data_set> samples)
    : samples_(std::move(samples)) {}

  void training(std::int64_t index, const sample_view& to) const override {
    if (interruption())
      throw ended_proof{};
    samples_->training(index, to);
  }
  std::int64_t evaluation_size() const override { return samples_->evaluation_size(); }
  void evaluation(std::int64_t index, const sample_view& to) const override {
    samples_->evaluation(index, to);
  }
  std::optional<data_identity> identity() const override {
    return samples_->identity();
  }
  std::string description() const override { return samples_->description(); }

private:
  std::shared_ptr<const data_set> samples_;
};

std::string name_of(const run_request& request) {
  const auto& plan = request.plan;
  return request.text + ", " + std::to_string(plan.dims.stages) + " stages, "
         + division_of(plan) + std::to_string(plan.batches().microbatches)
         + " microbatches, " + std::to_string(plan.dims.steps) + " steps of "
         + std::to_string(plan.work->batch) + ", "
         + (plan.machine.clock == clock_kind::real
              ? std::to_string(plan.machine.threads) + " threads"
              : "virtual time")
         + (plan.machine.processor_of(0).is_gpu() ? ", on a GPU" : "");
}

/// The smallest number of batches, at least `at_least`, that whole updates cover.
int first_whole(const run_plan& plan, int at_least) {
  auto part = plan.dims;
  for (part.steps = at_least; part.steps < plan.dims.steps; ++part.steps)
    if (std::int64_t{part.steps} * part.microbatches % update_size(plan.sch, part) == 0
        && validation_error(plan.sch, part).empty())
      return part.steps;
  return plan.dims.steps;
}

} // namespace

verification verify(const run_request& request, node_runs* performs) {
  auto plan = request.plan;
  keep_for_proofs(plan);
  const run_callbacks callbacks{.interrupted = &interruption()};
  const auto run = [&] {
    return performs != nullptr ? performs->perform(request.text, plan, callbacks)
                               : perform(plan, callbacks);
  };
  const auto result = run();
  verification verified{result.outcome, result.failure, {}, plan.dims.steps};
  if (result.outcome != ending::finished)
    return verified;
  if (const auto which = not_finite(plan.work->whole, readable(result.parameters));
      !which.empty())
    return {ending::failed,
            "the weights are not finite: " + which
              + "; a lower learning rate or clipping may help",
            {},
            plan.dims.steps};
  auto read = plan;
  read.work->data = std::make_shared<samples_until_interrupted>(plan.work->data);
  try {
    verified.proofs =
      prove(read, result, published::find(plan.sch.name, request.parameters));
  } catch (const ended_proof&) {
    return {ending::interrupted, "", {}, plan.dims.steps};
  }
  if (!sums_elsewhere(plan))
    return verified;
  const auto second = run();
  if (second.outcome == ending::finished)
    verified.proofs.push_back(again(plan, result, second));
  else
    verified = {second.outcome, "run again: " + second.failure, {}, plan.dims.steps};
  return verified;
}

verification verify_first(const run_request& request, int steps) {
  auto part = request;
  auto& plan = part.plan;
  plan.work->optimizer.schedule.course = plan.work->batch * plan.dims.steps;
  plan.dims.steps = first_whole(plan, steps);
  plan.copies.evaluate_every = plan.copies.checkpoint_every = 0;
  plan.copies.keep_steps = false;
  try {
    return verify(part);
  } catch (const std::bad_alloc&) {
    return {ending::failed, "out of memory", {}, plan.dims.steps};
  } catch (const std::exception& error) {
    return {ending::failed, error.what(), {}, plan.dims.steps};
  }
}

std::string verify(const options& o, const program_listener& listener,
                   std::vector<verified_run>& to) {
  auto shared = set_up_part(o, ranks_here(o));
  auto performs = node_runs::from(o);
  auto error = !shared ? shared.error() : !performs ? performs.error() : "";
  for (std::size_t i = 0; error.empty() && i < shared->runs.size(); ++i)
    error = performs->placement_error(shared->runs[i].plan);
  for (std::size_t i = 0; error.empty() && i < shared->runs.size(); ++i) {
    if (performs->uses_nodes())
      prove_on_local_gpu(shared->runs[i].plan);
    error = proof_error(shared->runs[i].plan);
  }
  if (!error.empty())
    return error;
  for (const auto& request : shared->runs) {
    const auto& [text, schedule, verified] = to.emplace_back(
      verified_run{name_of(request), request.text, verify(request, &*performs)});
    if (verified.outcome == ending::failed)
      listener.error(text + ": " + verified.failure);
    for (const auto& p : verified.proofs)
      if (p.fails())
        listener.error("FAILS  " + text + ": " + p.name + ": " + p.detail);
      else if (!o.output.quiet)
        (o.output.results_on_stdout() ? std::cerr : std::cout)
          << "  " << name_of(p.outcome) << "  " << text << ": " << p.name << ": "
          << p.detail << std::endl;
    if (interruption())
      break;
  }
  return {};
}

} // namespace troupe
