// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/stream.hpp"

#include <concepts>

namespace troupe::cuda {

#ifdef TROUPE_CUDA
inline constexpr bool is_built = true;
#else
inline constexpr bool is_built = false;
#endif

/// Whether a kernel of Scalars may have to run on a GPU: then it asks its stream.
template <class Scalar>
inline constexpr bool may_run = is_built&& std::same_as<Scalar, float>;

} // namespace troupe::cuda
