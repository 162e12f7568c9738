#pragma once

#include "actors/run/company.hpp"

#include <array>
#include <cstdint>

namespace troupe {

/// Bytes that the ZeRO table gives a rank (Rajbhandari et al., "ZeRO", 2020, figure 1),
/// for P parameters and N data replicas.
struct zero_bytes {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;

  double sum() const { return parameters + gradients + optimizer; }
};

/// All in 4 bytes, as here; the optimizer's state has so many values a parameter.
zero_bytes zero_in_fp32(double parameters, int state, int replicas, shared_out shares);

/// Mixed precision with Adam: 2 bytes a parameter and a gradient, 12 of optimizer
/// state: 16P; 4P + 12P/N; 2P + 14P/N; 16P/N.
zero_bytes zero_in_mixed_precision(double parameters, int replicas, shared_out shares);

/// The parameters that a rank computes with, be they there or gathered.
std::int64_t parameters_of_rank(const run_plan& plan, int rank);

/// Bytes that data replicas send each other in a run, by the book, over all ranks: an
/// update takes a reduce_scatter and an all_gather (an all_reduce is both), ZeRO 2 a
/// reduce_scatter a microbatch instead, ZeRO 3 also an all_gather in each direction.
/// The second of Chimera's directions also sends its gradients, and is sent new
/// parameters.
struct zero_traffic {
  double gradients = 0;
  double parameters = 0;
};
zero_traffic zero_traffic_of(const run_plan& plan);

} // namespace troupe
