// SPDX-License-Identifier: BSD-3-Clause
// Whole runs on a GPU. The first measures the gaps between the actions of one stage.
// Checks show whether two runs have the same bits, whether four stages have the bits of
// one stage, and how far a GPU is from the CPU in fp32.

#include "experiments/benchmarks/benchmarks.hpp"
#include "models/plain_loop.hpp"
#include "schedules/catalog/catalog.hpp"

#include <cmath>
#include <limits>

namespace troupe {

namespace {

using buckets = std::vector<std::vector<float>>;

std::int64_t differences(const buckets& first, const buckets& second) {
  std::int64_t result = 0;
  for (std::size_t i = 0; i < first.size(); ++i)
    for (std::size_t k = 0; k < first[i].size(); ++k)
      result += first[i][k] == second[i][k] ? 0 : 1; // NaN differs from itself
  return result;
}

/// The distance of the bucket that differs most: the norm of the difference, over the
/// norm of `to`.
double distance(const buckets& from, const buckets& to) {
  double result = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    double difference = 0, norm = 0;
    for (std::size_t k = 0; k < to[i].size(); ++k) {
      difference += std::pow(static_cast<double>(from[i][k]) - to[i][k], 2);
      norm += std::pow(static_cast<double>(to[i][k]), 2);
    }
    const double off = difference == 0 ? 0 : std::sqrt(difference / norm);
    result =
      off >= 0 ? std::max(result, off) : std::numeric_limits<double>::quiet_NaN();
    if (std::isnan(result))
      break;
  }
  return result;
}

/// One step of one sample, by a plain loop in fp32.
trained step_on(const benchmark& b, const network<float>& whole,
                const processor& where) {
  return train_plainly({.whole = whole,
                        .first_layers = *cut(whole, 1, {}),
                        .data = *b.plan.work->data,
                        .batches = {.batch = 1, .microbatches = 1},
                        .steps = 1,
                        .reads = {},
                        .optimizer = b.plan.work->optimizer,
                        .weights = b.plan.work->weights,
                        .threads = b.plan.machine.threads,
                        .compute_processor = where,
                        .progress = {}});
}

void compare_with_cpu(const benchmark& b) {
  auto options = b.plan.work->whole.options;
  options.stored = precision::fp32;
  const auto whole = *make_network<float>(options);
  auto where = b.plan.machine.processor_of(0);
  where.tf32 = false;
  const auto on_cpu = step_on(b, whole, {}), on_gpu = step_on(b, whole, where);
  const auto loss = on_cpu.loss.front();
  const auto report_value = [&](const std::string& name, double value) {
    b.report({"checks", name, value, "relative", {}, ""});
  };
  report_value("loss in fp32 beside the CPU's",
               std::abs(on_gpu.loss.front() - loss) / std::abs(loss));
  report_value("gradients in fp32 beside the CPU's",
               distance(on_gpu.gradients, on_cpu.gradients));
}

/// The parameters after a run.
buckets parameters_after(run_plan plan) {
  plan.keep.weights = true;
  return performed(plan).parameters;
}

void compare_runs(const benchmark& b) {
  constexpr int steps = 2;
  const auto one_stage = plan_of_1f1b(b.plan, 1, steps);
  const auto first = parameters_after(one_stage);
  const auto report_differences = [&](const std::string& name, const buckets& other) {
    const auto count = static_cast<double>(differences(first, other));
    b.report({"checks", name, count, "values", {}, ""});
  };
  report_differences("values in which two runs differ", parameters_after(one_stage));
  if (b.plan.work->whole.units() >= sharing_stages)
    report_differences("values in which one stage and four stages differ",
                       parameters_after(plan_of_sharing(b.plan, steps)));
}

} // namespace

void measure_actions(const benchmark& b) {
  constexpr int measured_batches = 4;
  const int batches = warmup_batches(b.plan) + measured_batches;
  auto plan = plan_of_1f1b(b.plan, 1, batches);
  plan.machine.threads = 1;
  plan.observed.launches = std::make_shared<launch_times>();
  (void)performed(plan);
  const auto& launches_made = plan.observed.launches->launches;
  const auto actions_of_a_batch =
    launches_made.size() / static_cast<std::size_t>(batches);
  std::vector<double> gaps, host;
  for (auto i = std::max<std::size_t>(
         launches_made.size() - measured_batches * actions_of_a_batch, 1);
       i < launches_made.size(); ++i) {
    gaps.push_back(seconds_between(launches_made[i - 1].end, launches_made[i].begin));
    host.push_back(launches_made[i].host_seconds);
  }
  double sum = 0;
  for (const double gap : gaps)
    sum += gap;
  const auto report_value = [&](const std::string& name, double seconds) {
    b.report({"actions", name, seconds * 1e6, "us", {}, ""});
  };
  report_value("mean gap between actions on the stream",
               sum / static_cast<double>(gaps.size()));
  report_value("gap between actions on the stream", median(std::move(gaps)));
  report_value("host time of an action", median(std::move(host)));
}

void check_gpu_runs(const benchmark& b) {
  compare_runs(b);
  compare_with_cpu(b);
}

} // namespace troupe
