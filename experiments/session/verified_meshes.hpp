// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <vector>

namespace troupe {

// The runs of verify --all on meshes with data replicas, tensor shards or experts, and
// with tied embeddings. Each mesh, except in add_exchanges_apart(), also has some of
// new_schedules (fitting_schedules.hpp), in rotation. `usual` has the options that all
// added runs share.

/// Adds runs whose updates use the gradients of one data replica each. In virtual time
/// some replicas are slower than others.
void add_exchanges_apart(std::vector<typed_options>& to, const typed_options& usual);

/// Adds every mesh of up to 4 data replicas, up to 4 ranks of a pipeline and 2 to 4
/// tensor shards, with at most 16 ranks. Each run has one exchange, in rotation. Meshes
/// are added for both clocks.
void add_tensor_meshes(std::vector<typed_options>& to, const typed_options& usual);

/// Adds the meshes of add_tensor_meshes() with sequence parallelism, without pipedream.
/// Runs have 10 steps in virtual time and 2 in real time.
void add_sequence_meshes(std::vector<typed_options>& to, const typed_options& usual);

/// Adds experts spread over 1, 2 and 4 data replicas, with both gates. Each run has one
/// exchange, in rotation.
void add_expert_meshes(std::vector<typed_options>& to, const typed_options& usual);

/// Adds tied embeddings of gpt and moe: the two copies of the matrix are on one stage,
/// or on two stages of one rank or of two ranks. Each run has one exchange, in
/// rotation.
void add_tied_meshes(std::vector<typed_options>& to, const typed_options& usual);

} // namespace troupe
