// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/perform.hpp"

#include <optional>

namespace troupe {

/// Bytes of a rank by the table of ZeRO (Rajbhandari et al., "ZeRO", 2020, figure 1),
/// for P parameters and N data replicas.
struct zero_bytes {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;

  double sum() const { return parameters + gradients + optimizer; }
};

/// Mixed precision with Adam: 2 bytes for a parameter, 2 for a gradient, 12 for
/// optimizer state. The four levels need 16P; 4P + 12P/N; 2P + 14P/N; 16P/N.
zero_bytes zero_in_mixed_precision(double parameters, int replicas, shared_out shares);

/// The bytes of a rank of the plan by the same table, but with 4 bytes for each value,
/// as troupe stores fp32. Parameters and gradients count for all stages of the rank.
/// Optimizer state counts for stages that this rank updates, not for Chimera's second
/// direction. Absent if a stage keeps several weight versions, as the table counts one.
/// \pre the plan has a training
std::optional<zero_bytes> zero_bytes_of(const run_plan& plan, int rank);

/// Bytes that data replicas send each other in a run by formula, over all ranks. An
/// update takes a reduce_scatter of gradients and an all_gather of parameters. Without
/// ZeRO an all_reduce is both, and counts as gradients. ZeRO 2 and 3 take a
/// reduce_scatter for each microbatch, not for each update. ZeRO 3 replaces the
/// all_gather of an update by one for each pass that reads parameters: a forward, a
/// backward, and a recomputed forward. Chimera's second direction also sends its
/// gradients, and receives new parameters.
struct zero_traffic {
  double gradients = 0;
  double parameters = 0;
};
/// Computes the bytes of a run by formula.
/// \pre the plan has a training
zero_traffic zero_traffic_of(const run_plan& plan);

} // namespace troupe
