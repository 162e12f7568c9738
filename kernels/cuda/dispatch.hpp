// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/stream.hpp"

#include <concepts>

// The condition under which a kernel asks for a GPU at run time.

namespace troupe::cuda {

#ifdef TROUPE_CUDA
inline constexpr bool is_built = true;
#else
inline constexpr bool is_built = false;
#endif

/// Whether a kernel of Scalar may have to run on a GPU. If so, the kernel asks the
/// stream.
template <class Scalar>
inline constexpr bool may_run = is_built&& std::same_as<Scalar, float>;

} // namespace troupe::cuda
