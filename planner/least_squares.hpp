// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Small dense systems: Cholesky's factor of a symmetric matrix, and least squares with
// factors of 0 or more.

#include <cstddef>
#include <optional>
#include <vector>

namespace troupe::planner {

/// A square matrix, or rows of equal length.
using dense_matrix = std::vector<std::vector<double>>;

/// The lower triangular L with L L^T = `a`; absent if `a` is not positive definite.
/// \param a symmetric, n x n; only the lower triangle is read
std::optional<dense_matrix> cholesky(const dense_matrix& a);

/// The solution x of L x = b, for a lower triangular L (n x n) and n values.
std::vector<double> solve_lower(const dense_matrix& lower, std::vector<double> b);

/// The solution x of L^T x = b.
std::vector<double> solve_lower_transposed(const dense_matrix& lower,
                                           std::vector<double> b);

/// The x of 0 or more that minimises the sum of squares of a x - b, by trying each set
/// of columns: at most ten columns. Columns without which the others do as well are 0.
/// \param a rows of equal length, one for each value of b
std::vector<double> positive_least_squares(const dense_matrix& a,
                                           const std::vector<double>& b);

} // namespace troupe::planner
