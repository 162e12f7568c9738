// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/stream.hpp"

#include <concepts>

// The condition under which a kernel checks at run time whether its stream has a GPU.

namespace troupe::cuda {

#ifdef TROUPE_CUDA
inline constexpr bool is_built = true;
#else
inline constexpr bool is_built = false;
#endif

/// True if a kernel of Scalar may have to run on a GPU. Then the kernel checks whether
/// the stream has a GPU.
template <class Scalar>
inline constexpr bool may_run = is_built&& std::same_as<Scalar, float>;

} // namespace troupe::cuda
