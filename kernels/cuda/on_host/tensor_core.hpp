// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

namespace troupe::on_host {

// Operations of a warp on a tensor core. All lanes of the warp call a function
// together. Each lane has fragments in the layout of the PTX ISA (cuda/mma.hpp).

/// Returns the address of one row of each of ldmatrix's four matrices. Of matrix m: the
/// address that lane 8 m + `row` passes. All lanes of the warp call together.
/// \param address the address that this lane passes
/// \param row index of the row in each matrix, from 0 to 7
std::array<const unsigned short*, 4> matrix_rows(const unsigned short* address,
                                                 unsigned row);

/// The operands of one lane for mma.m16n8k16.
struct mma_operands {
  unsigned a[4], b[2];
  float c[4];
};

/// Computes c + a b for the warp, and returns this lane's part.
std::array<float, 4> multiply_in_warp(const mma_operands& operands);

} // namespace troupe::on_host
