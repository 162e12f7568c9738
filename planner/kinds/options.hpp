// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Options of a training with the seconds of a step, which a search learns one row at a
// time: the problem of Bayesian search.

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::planner {

/// A number or a name.
using option_value = std::variant<double, std::string>;

struct options_row {
  std::vector<option_value> values;
  std::optional<double> seconds; ///< Absent: refused before any measurement.
};

struct options_problem {
  static constexpr const char* kind = "options";

  std::vector<std::string> columns; ///< Names of the values.
  std::vector<options_row> rows;
};

struct options_plan {
  std::vector<option_value> values;
};

/// Seconds of a step. The error is one sentence if no row has the values.
tl::expected<double, std::string> cost(const options_problem& problem,
                                       const options_plan& plan);

} // namespace troupe::planner
