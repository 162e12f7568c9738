// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

namespace troupe::on_host {

// What a warp does at once on a tensor core, each lane with fragments as PTX ISA has
// them (cuda/mma.hpp).

/// Addresses of rows of the four matrices that ldmatrix reads: of matrix m, the row
/// that lane 8 m + `row` brings.
std::array<const unsigned short*, 4> matrix_rows(const unsigned short* own,
                                                 unsigned row);

/// What a lane brings to mma.m16n8k16.
struct mma_operands {
  unsigned a[4], b[2];
  float c[4];
};

/// \return c + a b, this lane's part of it
std::array<float, 4> multiply_in_warp(const mma_operands& own);

} // namespace troupe::on_host
