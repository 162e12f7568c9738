// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/benchmarks/benchmarks.hpp"
#include "experiments/benchmarks/model_operations.hpp"
#include "experiments/benchmarks/training_steps.hpp"
#include "kernels/switched_off.hpp"
#include "models/plain_loop.hpp"
#include "schedules/catalog/catalog.hpp"

#include <numeric>

namespace troupe {

using seconds_list = std::vector<double>;

seconds_list batch_seconds(const run_plan& plan, const record& ran) {
  std::vector<nanoseconds> ends(static_cast<std::size_t>(plan.dims.steps));
  for (const auto& row : ran)
    for (const auto& s : row) {
      auto& end =
        ends[static_cast<std::size_t>(s.action.microbatch / plan.dims.microbatches)];
      end = std::max(end, s.end);
    }
  seconds_list result;
  for (std::size_t i = 1; i < ends.size(); ++i)
    result.push_back(static_cast<double>(ends[i] - ends[i - 1]) / 1e9);
  return result;
}

double mean_seconds_of_a_step(const run_plan& plan) {
  const auto seconds = batch_seconds(plan, performed(plan).actions);
  return std::accumulate(seconds.begin(), seconds.end(), 0.0)
         / static_cast<double>(std::max<std::size_t>(seconds.size(), 1));
}

run_plan plan_of_steps(run_plan plan, const schedule& sch, int stages, int steps) {
  plan.sch = sch;
  plan.dims.stages = stages;
  plan.dims.steps = steps;
  plan.keep.record = true;
  plan.work->first_layers = *cut(plan.work->whole, stages, {});
  return plan;
}

namespace {

void append(seconds_list& to, const seconds_list& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// The batches behind the warm-up; `batches` begins with the second batch.
seconds_list without_warmup(const run_plan& plan, seconds_list batches) {
  batches.erase(batches.begin(), batches.begin() + (warmup_batches(plan) - 1));
  return batches;
}

seconds_list through_actors(run_plan plan, int threads) {
  plan.machine.threads = threads;
  return without_warmup(plan, batch_seconds(plan, performed(plan).actions));
}

seconds_list bare(const run_plan& plan, int threads, int steps) {
  using clock = std::chrono::steady_clock;
  const auto& work = *plan.work;
  const auto first_layers = *cut(work.whole, 1, {});
  std::vector<clock::time_point> ends;
  train_plainly({.whole = work.whole,
                 .first_layers = first_layers,
                 .data = *work.data,
                 .batches = plan.batches(),
                 .steps = steps,
                 .reads = {},
                 .optimizer = work.optimizer,
                 .weights = work.weights,
                 .threads = threads,
                 .compute_processor = plan.machine.processor_of(0),
                 .progress = [&](double) { ends.push_back(clock::now()); }});
  seconds_list result;
  for (std::size_t i = 1; i < ends.size(); ++i)
    result.push_back(std::chrono::duration<double>(ends[i] - ends[i - 1]).count());
  return result;
}

/// Steps of a run that warms up, and then measures for 0.7 seconds.
int steps_of_a_run(const run_plan& plan) {
  const int steps_before =
    plan.machine.processor_of(0).is_gpu() ? 6 : 2; // the first are slow
  return std::clamp(static_cast<int>(0.7 / bare(plan, 1, steps_before).back()), 2, 50)
         + warmup_batches(plan);
}

double product_rate(const benchmark& b) {
  if (const auto where = b.plan.machine.processor_of(0); where.is_gpu())
    return gpu_product_rate(where, b.plan.work->whole.options.stored, b.gpu_side);
  constexpr std::int64_t n = 1024;
  std::vector<float> space(3 * n * n, 0.5F);
  const auto took = take_turns([&] { yardstick_product(n, space.data()); }, [] {}, 0.2);
  return 2.0 * n * n * n / took.first;
}

/// Tokens or samples that a step predicts, with their name.
struct step_size {
  double predictions;
  std::string unit;
};

step_size size_of_a_step(const benchmark& b) {
  const auto& work = *b.plan.work;
  return {static_cast<double>(work.batch * work.whole.rows),
          work.whole.reads_tokens ? "tokens/s" : "samples/s"};
}

} // namespace

int warmup_batches(const run_plan& plan) {
  // A list of launches becomes a graph when it repeats, and batches take turns with the
  // slots of rings.
  return plan.machine.processor_of(0).is_gpu() && !switched_off("TROUPE_GRAPHS") ? 12
                                                                                 : 1;
}

run_plan plan_of_sharing(const run_plan& plan, int steps) {
  auto result = plan_of_1f1b(plan, sharing_stages, steps);
  result.machine.processors = {plan.machine.processor_of(0)};
  return result;
}

run_plan plan_of_1f1b(run_plan plan, int stages, int steps) {
  return plan_of_steps(std::move(plan), one_f_one_b(), stages, steps);
}

run_result performed(const run_plan& plan) {
  auto result = perform(plan);
  if (result.outcome == ending::failed)
    throw std::runtime_error(plan.sch.name + ": " + result.failure);
  return result;
}

void measure_training(const benchmark& b) {
  using clock = std::chrono::steady_clock;
  const auto [predictions, unit] = size_of_a_step(b);
  const int steps = steps_of_a_run(b.plan);
  const bool on_gpu = b.plan.machine.processor_of(0).is_gpu();
  const bool shares = on_gpu && b.plan.work->whole.units() >= sharing_stages;
  const auto one_stage = plan_of_1f1b(b.plan, 1, steps);
  seconds_list plain, actors, rates, sharing;
  const auto last_begin = clock::now() + std::chrono::seconds{20};
  for (int turn = 0; turn < 3; ++turn) {
    if (on_gpu && turn > 0 && clock::now() > last_begin)
      break;
    append(plain, without_warmup(b.plan, bare(b.plan, 1, steps)));
    rates.push_back(product_rate(b));
    append(actors, through_actors(one_stage, 1));
    if (shares)
      append(sharing,
             through_actors(plan_of_sharing(b.plan, steps), b.plan.machine.threads));
  }
  b.report({"training",
            "parameters",
            static_cast<double>(b.plan.work->whole.values()),
            "values",
            {},
            ""});
  const std::string device = on_gpu ? "one GPU" : "one core";
  const double one_core = predictions / median(plain);
  b.report({"training", "bare loop, " + device, one_core, unit, {}, ""});
  if (b.model.model == "gpt") {
    const double rate = operations_a_token(b.plan.work->whole, b.model) * one_core;
    b.report({"training", "bare loop's model operations", rate / 1e9, "GFLOP/s",
              rate / median(rates), on_gpu ? "product" : "sgemm"});
  }
  b.report({"training", "one stage's actors, " + device, predictions / median(actors),
            unit, median(plain) / median(actors), "bare loop"});
  if (shares)
    b.report({"training", "1f1b, 4 stages that share the GPU",
              predictions / median(sharing), unit, median(actors) / median(sharing),
              "one stage"});
  if (const int threads = b.plan.machine.threads; threads > 1 && !on_gpu) {
    const double rate = predictions / median(through_actors(one_stage, threads));
    b.report({"training", "one stage's actors, " + std::to_string(threads) + " threads",
              rate, unit, rate / one_core, "bare loop"});
  }
}

void measure_schedules(const benchmark& b) {
  const auto [predictions, unit] = size_of_a_step(b);
  const int steps = steps_of_a_run(b.plan);
  const double plain = median(without_warmup(b.plan, bare(b.plan, 1, steps)));
  for (const int stages : {2, 4})
    for (const auto& entry : catalog()) {
      const auto sch = *find_schedule(entry.name);
      if (stages > b.plan.work->whole.units()
          || !validation_error(sch, {stages, b.plan.dims.microbatches, steps}).empty())
        continue;
      const auto plan = plan_of_steps(b.plan, sch, stages, steps);
      if (!validation_error(plan).empty())
        continue;
      const double took = median(through_actors(plan, plan.machine.threads));
      b.report({"schedules", sch.name + ", " + std::to_string(plan.ranks()) + " ranks",
                predictions / took, unit, plain / took, "bare loop"});
    }
}

} // namespace troupe
