// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <vector>

namespace troupe {

// What verify --all covers of meshes with several ranks in a stage. Schedules that give
// a rank several stages or split backwards take turns.

/// Adds runs whose updates are of one data replica each. One replica is slower than
/// the others in virtual time.
void add_exchanges_apart(std::vector<typed_options>& to, const typed_options& usual);

/// Adds every mesh of data, pipe and tensor of at most 16 ranks, odd ones included,
/// each under one exchange by turns.
void add_tensor_meshes(std::vector<typed_options>& to, const typed_options& usual);

/// Adds the same meshes by sequence, without pipedream, and in real time in shorter
/// runs.
void add_sequence_meshes(std::vector<typed_options>& to, const typed_options& usual);

/// Adds experts on 1, 2 and 4 ranks, by both gates, each under one exchange by turns.
void add_expert_meshes(std::vector<typed_options>& to, const typed_options& usual);

/// Adds tied embeddings of gpt and moe, wherever their two ends stand, each mesh under
/// one exchange by turns.
void add_tied_meshes(std::vector<typed_options>& to, const typed_options& usual);

} // namespace troupe
