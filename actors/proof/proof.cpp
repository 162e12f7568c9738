// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/proof.hpp"

#include "actors/proof/clock_validation.hpp"
#include "actors/proof/formula.hpp"
#include "actors/proof/record_validation.hpp"
#include "actors/proof/replay.hpp"
#include "actors/proof/step_validator.hpp"
#include "plan/sharding.hpp"

#include <functional>
#include <stdexcept>

namespace troupe {

namespace {

/// Repeats a training and returns its results; the witness may be null.
using loop = std::function<trained(update_witness*)>;

proof compared(const std::string& name, const run_plan& plan, const run_result& result,
               const loop& again) {
  if (sums_elsewhere(plan)) {
    step_validator validator{plan, result};
    return validator.judged(name, again(&validator));
  }
  const trained run{result.loss, result.parameters, result.gradients};
  const auto apart = between(*plan.work, run, again(nullptr));
  return {name, apart.none() ? verdict::holds : verdict::fails, apart.text()};
}

loop plainly(plain_plan loop_plan) {
  return [loop_plan = std::move(loop_plan)](update_witness* witness) mutable {
    loop_plan.witness = witness;
    return train_plainly(loop_plan);
  };
}

proof replayed(const run_plan& plan, const run_result& result) {
  try {
    return compared("replay", plan, result, [&](update_witness* witness) {
      return replay(plan, result.actions, result.accesses, witness);
    });
  } catch (const std::logic_error& nonsense) {
    return {"replay", verdict::fails, nonsense.what()};
  }
}

/// Returns the proof that all holders of the same parameters end with equal values;
/// absent if every parameter has one holder.
std::optional<proof> of_copies(const run_plan& plan, const run_result& result) {
  const bool has_copies = plan.directions() * plan.mesh[axis::tensor] > 1;
  if (!has_copies && (plan.mesh[axis::data] == 1 || !replicas_agree(plan)))
    return {};
  const auto& odd = result.odd_stage;
  return judged(replicas_agree(plan) ? "replicas" : "directions",
                odd.empty() ? "" : odd + " has parameters that differ from replica 0's",
                "equal to the bit");
}

proof by_formula(const run_plan& plan, const run_result& result,
                 const std::optional<published::rule>& paper_rule) {
  if (!paper_rule)
    return {"formula", verdict::no_formula,
            "troupe has no formula from a paper for " + plan.sch.name};
  const auto deviation = first_wrong(plan, *paper_rule, result);
  if (!deviation.empty())
    return judged("formula", deviation, "");
  if (!updates_are_by(plan, update_by::all_replicas))
    return judged("formula", "", "versions, counts and answers follow the rule");
  if (paper_rule->name == "ampnet")
    return judged("formula", "",
                  choices_can_be_judged(plan)
                    ? "versions, counts and every choice follow the rule"
                    : "versions, counts and bounds follow the rule");
  if (published::flushes(*paper_rule)) // the plain loop checks the versions
    return judged("formula", "", "versions and counts follow the paper");
  return compared("formula", plan, result, plainly(plain_of(plan, *paper_rule)));
}

} // namespace

void keep_for_proofs(run_plan& plan) {
  plan.keep.record = true;
  plan.keep.weights = true;
  plan.keep.gradients = true;
  plan.keep.versions = sums_elsewhere(plan);
}

bool can_be_replayed(const run_plan& plan) {
  return plan.machine.clock == clock_kind::virtual_time
         || !updates_are_by(plan, update_by::itself);
}

std::vector<proof> prove(const run_plan& plan, const run_result& result,
                         const std::optional<published::rule>& paper_rule) {
  std::vector<proof> proofs;
  if (!plan.sch.asynchronous() && updates_are_by(plan, update_by::all_replicas))
    proofs.push_back(compared("plain loop", plan, result, plainly(plain_of(plan))));
  proofs.push_back(replayed(plan, result));
  if (auto copies = of_copies(plan, result))
    proofs.push_back(std::move(*copies));
  proofs.push_back(by_formula(plan, result, paper_rule));
  return proofs;
}

std::vector<proof> prove(const run_plan& plan, const run_result& result) {
  return prove(plan, result, rule_of(plan.sch));
}

} // namespace troupe
