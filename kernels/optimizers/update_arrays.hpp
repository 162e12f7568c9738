// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

// The arrays of an optimizer's update. An optimizer's header, such as adamw.hpp,
// defines the update of one value, for the CPU and for a GPU.

/// Marks a function that the CPU and a GPU run.
#ifdef __CUDACC__
#define TROUPE_CPU_AND_GPU __host__ __device__
#else
#define TROUPE_CPU_AND_GPU
#endif

namespace troupe {

/// The largest number of state arrays of an update.
inline constexpr int most_states = 2;

/// Arrays of n values each. `to` may be `from`.
struct update_arrays {
  const float* gradient; ///< Sum over the samples of the update.
  const float* from;     ///< Parameters before the update.
  float* to;             ///< Parameters after the update.
  /// State arrays of the optimizer, updated in place; unused entries may be null.
  std::array<float*, most_states> state = {};
};

} // namespace troupe
