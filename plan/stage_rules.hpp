// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/position.hpp"
#include "plan/run_plan.hpp"

// How a stage stores versions of the parameters, and how passes send tensors.

namespace troupe {

/// True if older versions store the matrices of products as bf16. This requires a run
/// that stores bf16 and stages that hold whole parameters: a share of a bucket may
/// begin within a matrix.
bool rounds_older_versions(const run_plan& plan);

/// True if matrices stay packed for bf16 products: the run stores bf16, several
/// microbatches of a direction read a version, and stages hold whole parameters.
bool keeps_packed_weights(const run_plan& plan);

/// Number of copies of a stage's parameters that evaluations may need at the same
/// time; 0 if no evaluation reads the stage. Evaluations need two copies, and one
/// more for each whole batch of microbatches that stage 0 stashes.
int snapshots_of(const run_plan& plan, position p);

/// True if passes of a stage have meetings between pieces: with tensor shards, with
/// data replicas that divide the layers, or with experts.
bool passes_meet(const run_plan& plan, int stage);

/// True if a tensor between the stage at `lower` and the next stage is sent at
/// launch, provided that both stages are in one process. This needs GPUs for both
/// stages, as streams of GPUs wait for each other. False for local rules, which
/// choose by arrivals. False if passes of one of both stages have meetings, as actors
/// move the arrays of meetings. False in a simulation, in virtual time, and with
/// relays.
/// \pre `lower` is not the last stage
bool leaves_at_launch(const run_plan& plan, position lower);

} // namespace troupe
