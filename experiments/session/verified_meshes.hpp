// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <vector>

namespace troupe {

// The runs of verify --all on meshes with several ranks in a stage. Schedules that give
// a rank several stages or split backwards take turns.

/// Adds runs whose updates use the gradients of one data replica each. One replica is
/// slower than the others in virtual time.
void add_exchanges_apart(std::vector<typed_options>& to, const typed_options& usual);

/// Adds every mesh of data, pipe and tensor with at most 16 ranks, odd ones included,
/// each under one exchange in rotation.
void add_tensor_meshes(std::vector<typed_options>& to, const typed_options& usual);

/// Adds the same meshes with sequence parallelism, without pipedream, and with fewer
/// steps in real time.
void add_sequence_meshes(std::vector<typed_options>& to, const typed_options& usual);

/// Adds experts on 1, 2 and 4 ranks, with both gates, each under one exchange in
/// rotation.
void add_expert_meshes(std::vector<typed_options>& to, const typed_options& usual);

/// Adds tied embeddings of gpt and moe, at all positions of the two ends, each mesh
/// under one exchange in rotation.
void add_tied_meshes(std::vector<typed_options>& to, const typed_options& usual);

} // namespace troupe
