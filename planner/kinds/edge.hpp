// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Edges between operators, which are numbered in a topological order.

#include <compare>

namespace troupe::planner {

/// The output of operator `from` is an input of operator `to`.
/// \inv from < to
struct edge {
  int from = 0;
  int to = 0;

  auto operator<=>(const edge&) const = default;
};

} // namespace troupe::planner
