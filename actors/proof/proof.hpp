// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/difference.hpp"
#include "actors/proof/published.hpp"
#include "actors/run/perform.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Sets a plan's options so that a run keeps everything that the proofs need. Versions
/// are kept only if sums_elsewhere(plan).
void keep_for_proofs(run_plan& plan);

/// True if a run can be repeated from the record. False for a real-time run in which
/// data replicas write the same memory at the same time (Hogwild).
bool can_be_replayed(const run_plan& plan);

/// One sentence if a run cannot be proved, with a remedy; else an empty text.
std::string proof_error(const run_plan& plan);

/// Puts a plan's ranks on GPU 0 of this process, so that the proof of a run on nodes
/// uses this GPU, whichever GPUs the nodes use. Does nothing if any rank is on a CPU.
void prove_on_local_gpu(run_plan& plan);

/// Returns the proofs that apply to a run:
/// - plain loop, if all data replicas update together: the losses, gradients and
///   parameters of a flush schedule equal one plain loop's;
/// - replay: the record, computed again in a plain loop, gives the same bits;
/// - replicas: all replicas end with equal parameters. Where data replicas may end with
///   different versions, the proof is "directions": only the copies within a data
///   replica must agree. The proof is absent if no parameter has copies to compare;
/// - formula: the record matches the schedule's paper, written a second time without
///   the schedule's code. For PipeDream and 2BW, if all data replicas update together,
///   a loop by the paper's formula gives the same bits;
/// - memory, if the run was in one process: each rank has reserved the bytes that
///   bytes_needed() announces.
///
/// Equal means equal to the bit, unless the run sums in another order than one device
/// (sums_elsewhere). Then loops follow the run update by update (step_validator). Where
/// each data replica has its own updates, the replay repeats the order of updates in
/// each share of the parameters. This order is also checked against the bound on
/// staleness.
///
/// \param paper_rule the published rule of the schedule that the user asked for. Absent
/// where none is published: the verdict of the formula proof is then no_formula
/// \pre keep_for_proofs() was called for the plan before the run, and the run has
/// finished
/// \pre can_be_replayed(plan)
std::vector<proof> prove(const run_plan& plan, const run_result& result,
                         const std::optional<published::rule>& paper_rule);

/// Returns the proofs that apply to a run, by the published rule of the plan's
/// schedule.
/// \pre keep_for_proofs() was called for the plan before the run, and the run has
/// finished
/// \pre can_be_replayed(plan)
std::vector<proof> prove(const run_plan& plan, const run_result& result);

} // namespace troupe
