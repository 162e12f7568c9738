// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/proof.hpp"

#include "actors/proof/clock_validation.hpp"
#include "actors/proof/formula.hpp"
#include "actors/proof/record_validation.hpp"
#include "actors/proof/replay.hpp"
#include "actors/proof/step_validator.hpp"
#include "plan/replica_rules.hpp"
#include "plan/stage_pools.hpp"

#include <functional>
#include <stdexcept>
#include <string>

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

/// Returns the proof that each rank has reserved the bytes that the plan announces.
/// Absent from a run in several processes, which also reserve memory for messages
/// between processes. GPUs that could not exchange tensors directly reserve less.
std::optional<proof> of_memory(const run_plan& plan, const run_result& result) {
  if (result.processes > 1)
    return {};
  const auto announced = bytes_needed(plan);
  std::string deviation;
  for (std::size_t rank = 0; rank < announced.size() && deviation.empty(); ++rank)
    if (const auto reserved = result.reserved_bytes.at(rank);
        reserved != announced[rank]
        && (result.ungrouped_reason.empty() || reserved > announced[rank]))
      deviation = "rank " + std::to_string(rank) + " has reserved "
                  + std::to_string(result.reserved_bytes[rank])
                  + " bytes, and the plan announces " + std::to_string(announced[rank]);
  return judged("memory", deviation, "equal to the announced bytes");
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

void prove_on_local_gpu(run_plan& plan) {
  if (const auto first = plan.machine.processor_of(0);
      first.is_gpu() && !plan.machine.mixes_processors(plan.ranks()))
    plan.machine.processors = {{.gpu = 0, .tf32 = first.tf32}};
}

std::string proof_error(const run_plan& plan) {
  if (!can_be_replayed(plan))
    return "hogwild cannot be proved in real time, where no record has the order of "
           "writes: say --clock virtual, or another --exchange";
  if (plan.machine.mixes_processors(plan.ranks()))
    return "a proof needs all stages on the CPU or all on GPUs, as CPU and GPU differ "
           "in bits: say --device cpu or --device cuda";
  if (const auto why = absence_of_gpus();
      plan.machine.processor_of(0).is_gpu() && !why.empty())
    return "a proof also computes all stages on this machine, which has no usable GPU: "
           + why;
  return {};
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
  if (auto memory = of_memory(plan, result))
    proofs.push_back(std::move(*memory));
  return proofs;
}

std::vector<proof> prove(const run_plan& plan, const run_result& result) {
  return prove(plan, result, rule_of(plan.sch));
}

} // namespace troupe
