// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/run_account.hpp"

#include "actors/run/timing.hpp"
#include "experiments/report/seconds.hpp"

#include <algorithm>

namespace troupe {

namespace {} // namespace

bool verification::holds() const {
  return outcome == ending::finished && std::ranges::none_of(proofs, &proof::fails);
}

std::string verification::sentence() const {
  const auto span =
    " over " + std::to_string(steps) + (steps == 1 ? " step" : " steps");
  if (outcome == ending::interrupted)
    return "not proved" + span + ": interrupted";
  if (outcome != ending::finished)
    return "not proved" + span + ": " + failure.substr(0, failure.find('\n'));
  std::string held, failed, unknown;
  for (const auto& p : proofs)
    if (p.fails())
      failed +=
        (failed.empty() ? "" : "; ") + p.name + " fails" + span + ": " + p.detail;
    else if (p.outcome == verdict::holds)
      held += (held.empty() ? "" : ", ") + p.name;
    else
      unknown = "; " + p.name + ": no formula is published";
  if (!failed.empty())
    return failed;
  return held + (held.find(',') == held.npos ? " holds" : " hold") + span + unknown;
}

std::string missing_losses(const run_account& run) {
  const auto& r = run.result;
  if (r.outcome == ending::failed)
    return {};
  if (r.missing_losses > 0)
    return "the losses of " + std::to_string(r.missing_losses)
           + " microbatches have not arrived: the results contain only losses of the "
             "first "
           + std::to_string(run.samples()) + " samples";
  if (const auto& losses_of_run = run.losses_of_all_starts;
      losses_of_run && losses_of_run->missing > 0)
    return "the losses of " + std::to_string(losses_of_run->missing)
           + " samples were lost with nodes: the results lack these losses, but the "
             "weights contain their updates";
  return {};
}

ending run_account::outcome() const {
  return result.outcome == ending::finished && !evaluated_to_end ? ending::interrupted
                                                                 : result.outcome;
}

loss_history::series run_account::losses() const {
  if (losses_of_all_starts)
    return *losses_of_all_starts;
  const auto& plan = request->plan;
  loss_history::series series{.loss = result.loss,
                              .samples = result.loss_samples,
                              .every = result.loss_every,
                              .samples_before = total_of(run_samples{}, plan).count};
  for (auto& samples : series.samples)
    samples = total_of(run_samples{samples}, plan).count;
  return series;
}

loss_curve run_account::curve() const {
  const auto series = losses();
  loss_curve curve{series.loss, series.samples, {}, series.samples_before};
  if (!losses_of_all_starts)
    curve.seconds = seconds_of(result.loss_times);
  return curve;
}

std::optional<double> shortest_time(const std::vector<run_account>& runs) {
  std::optional<double> shortest;
  for (const auto& run : runs)
    if (const auto end = end_of(run.curve());
        end && run.result.outcome == ending::finished)
      shortest = std::min(*end, shortest.value_or(*end));
  return shortest;
}

std::int64_t window_of(const run_account& run) {
  return samples_of_target(run.request->plan.work->batch);
}

std::int64_t run_account::samples() const {
  if (!losses_of_all_starts)
    return result.samples;
  const auto& series = *losses_of_all_starts;
  return series.samples.empty() ? 0 : series.samples.back() - series.samples_before;
}

timing_kind run_account::timing() const {
  if (virtual_time())
    return timing_kind::virtual_time;
  if (modelled)
    return timing_kind::modelled;
  return has_thread_a_rank(request->plan) ? timing_kind::measured : timing_kind::shared;
}

std::string name_of(ending outcome) {
  switch (outcome) {
  case ending::finished:
    return "finished";
  case ending::interrupted:
    return "interrupted";
  default:
    return "failed";
  }
}

std::string name_of(verdict says) {
  return says == verdict::holds   ? "holds"
         : says == verdict::fails ? "fails"
                                  : "no formula";
}

std::string name_of(timing_kind timing) {
  switch (timing) {
  case timing_kind::measured:
    return "measured";
  case timing_kind::modelled:
    return "modelled";
  case timing_kind::shared:
    return "shared";
  case timing_kind::virtual_time:
    return "virtual";
  }
  return "";
}

std::optional<double> run_account::samples_per_second() const {
  if (!request->plan.work)
    return {};
  const double time =
    virtual_time() ? seconds_of(result.sums.makespan) : result.seconds;
  return time > 0 ? std::optional{static_cast<double>(result.samples) / time}
                  : std::nullopt;
}

std::optional<double> run_account::tokens_per_second() const {
  const auto samples = samples_per_second();
  if (!samples || !request->plan.work->whole.reads_tokens)
    return {};
  const auto& work = *request->plan.work;
  return *samples * static_cast<double>(request->plan.batches().tokens(work.whole.rows))
         / static_cast<double>(work.batch);
}

} // namespace troupe
