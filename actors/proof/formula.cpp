// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/formula.hpp"

#include "actors/proof/clock_validation.hpp"
#include "actors/proof/exchange_checks.hpp"
#include "actors/proof/record_validation.hpp"
#include "actors/proof/replica_sums.hpp"
#include "plan/replica_rules.hpp"
#include "schedules/program.hpp"

namespace troupe {

plain_plan plain_of(const run_plan& plan) {
  const auto& work = *plan.work;
  const int directions = plan.directions();
  plain_plan result{
    .whole = work.whole,
    .first_layers = work.first_layers,
    .data = *work.data,
    .batches = plan.batches(),
    .steps = plan.dims.steps,
    .replicas = plan.replicas(),
    .update_every = plan.dims.microbatches / directions,
    .sum = [&plan](const std::vector<float*>& arrays,
                   std::int64_t n) { sum_replicas(plan, arrays, n); },
    .made_of = [&plan](std::size_t layer) { return summed_buckets(plan, layer); },
    .optimizer = work.optimizer,
    .directions = directions,
    .weights = work.weights};
  if (plan.sch.sums_in_any_order)
    result.orders = summing_orders(plan.sch, plan.dims);
  result.compute_processor = plan.machine.processor_of(0);
  if (shares_out(plan, shared_out::gradients))
    result.sum_microbatch = [&plan](const std::vector<float*>& arrays, std::int64_t n) {
      sum_data_replicas(plan, arrays, n);
    };
  return result;
}

plain_plan plain_of(const run_plan& plan, const published::rule& paper_rule) {
  auto result = plain_of(plan);
  const auto dims = plan.dims;
  const int share = dims.microbatches / published::directions(paper_rule);
  result.update_every = published::minibatch(paper_rule, dims);
  // k counts the microbatches of the first direction.
  result.reads = [dims, paper_rule, share](int stage, int k) {
    return *published::version_read(paper_rule, dims, stage,
                                    k / share * dims.microbatches + k % share);
  };
  return result;
}

std::string first_wrong(const run_plan& plan, const published::rule& paper_rule,
                        const run_result& result) {
  auto deviation = first_wrong_entry(plan, paper_rule, result.actions);
  if (deviation.empty() && paper_rule.name == "ampnet")
    deviation =
      first_wrong_choice(plan, paper_rule, result.actions, result.clock_doubt);
  if (deviation.empty())
    deviation = first_wrong_time(plan, paper_rule, result.sums);
  if (updates_are_by(plan, update_by::all_replicas))
    return deviation;
  if (deviation.empty())
    deviation = first_wrong_access(plan, result);
  return deviation.empty() ? first_early_answer(plan, result.actions) : deviation;
}

} // namespace troupe
