// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/company.hpp"

#include <optional>

namespace troupe {

/// Bytes that the ZeRO table gives a rank (Rajbhandari et al., "ZeRO", 2020, figure 1),
/// for P parameters and N data replicas.
struct zero_bytes {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;

  double sum() const { return parameters + gradients + optimizer; }
};

/// Mixed precision with Adam: 2 bytes a parameter and a gradient, 12 of optimizer
/// state: 16P; 4P + 12P/N; 2P + 14P/N; 16P/N.
zero_bytes zero_in_mixed_precision(double parameters, int replicas, shared_out shares);

/// What a rank of the plan holds by the same table, all in 4 bytes as here: parameters
/// and gradients of all its stages, and the optimizer's state of those whose updates
/// are made there, of which Chimera's second direction has none. Absent where a stage
/// keeps several weight versions, as the table has one.
std::optional<zero_bytes> zero_bytes_of(const run_plan& plan, int rank);

/// Bytes that data replicas send each other in a run, by the book, over all ranks: an
/// update takes a reduce_scatter and an all_gather (an all_reduce is both), ZeRO 2 a
/// reduce_scatter a microbatch instead, ZeRO 3 also an all_gather for each pass that
/// reads parameters: a forward, a backward, and a forward that runs again.
/// The second of Chimera's directions also sends its gradients, and is sent new
/// parameters.
struct zero_traffic {
  double gradients = 0;
  double parameters = 0;
};
zero_traffic zero_traffic_of(const run_plan& plan);

} // namespace troupe
