// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/optimizers/value_update.hpp"
#include "kernels/stream.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Makes one update of n parameters. The bits of a value do not depend on the other
/// values, nor on how many are updated together.
/// \param scale factor of the gradient: 1 / samples, times the factor of clipping
/// \pre the arrays have the state arrays of the update, with zeros before the first
/// update
void update_values(const value_update& update, float scale, const update_arrays& arrays,
                   std::int64_t n, stream& stream);

/// Returns the sum of each array's squares, in double, on the CPU in index order. On a
/// GPU, waits for the stream.
/// \throws std::runtime_error if a kernel of a GPU failed
std::vector<double> sums_of_squares(const std::vector<std::span<const float>>& arrays,
                                    stream& stream);

/// Returns the sum of all squares in double, on the CPU, with the stream's threads. The
/// order of additions is fixed, and differs from sums_of_squares(): for reports.
double total_of_squares(const std::vector<std::span<const float>>& arrays,
                        stream& stream);

} // namespace troupe
