// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/on_host/launch_registry.hpp"
#include "kernels/stored_matrix.hpp"

namespace troupe::on_host {

/// Checks the accesses of a library to the rows of a stored matrix, and leaves out gaps
/// between rows.
/// \throws kernel_error
inline void watch_rows(const stored_matrix<const float>& m, access_kind kind) {
  const auto value = m.is_bf16 ? sizeof(bf16) : sizeof(float);
  for (std::int64_t r = 0; r < m.rows; ++r)
    watch_library(static_cast<const char*>(m.data)
                    + static_cast<std::size_t>(r * m.stride) * value,
                  m.columns * static_cast<std::int64_t>(value), kind);
}

} // namespace troupe::on_host
