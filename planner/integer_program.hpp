// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Linear programmes with some columns of whole numbers, solved by COIN-OR's CBC.

#include "planner/problem.hpp"

#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::planner {

inline constexpr double infinite = std::numeric_limits<double>::infinity();

/// Why a search by the solver ended.
enum class search_end {
  proved,      ///< The values are the best, or no values satisfy all rows.
  out_of_time, ///< There may be better values.
  failed       ///< The solver ended in an error twice, or could not run.
};

/// The end of a search.
struct solved_program {
  /// All columns; absent: none were found.
  std::optional<std::vector<double>> values;
  search_end end = search_end::failed;
};

/// Says in an answer why it may not be the best.
void tell_end(search_end end, answer& to);

/// Minimises the sum of costs times columns. Rows bound sums of columns. The solver's
/// tolerances are absolute, 1e-9 to 1e-6: an optimum far below 1 is found wrong.
class integer_program {
public:
  /// Adds a column and returns its number.
  int add_column(double cost, double lower, double upper, bool is_whole);

  /// Adds lower <= sum of factor * column <= upper.
  void add_row(const std::vector<std::pair<int, double>>& terms, double lower,
               double upper);

  int columns() const { return static_cast<int>(cost_.size()); }

  /// Keeps a column at 0. A column that no answer uses is excluded: a large factor of
  /// such a column beside others would break the solver's arithmetic.
  void exclude(int column) { upper_[static_cast<std::size_t>(column)] = 0; }

  /// The best values that the solver finds in the time. The solver may take a little
  /// longer. It runs in a process of its own, as assertions of its linear solver abort;
  /// then it is asked once more, with another tolerance.
  solved_program best_found(double most_seconds) const;

private:
  /// The best values by the solver in this process.
  /// \param tolerance of reduced costs, as text
  solved_program solved(double most_seconds, const char* tolerance) const;

  std::vector<double> cost_, lower_, upper_;
  std::vector<int> whole_; // columns
  std::vector<double> row_lower_, row_upper_;
  // terms column by column, as the solver wants them
  std::vector<std::vector<std::pair<int, double>>> terms_;
};

} // namespace troupe::planner
