// SPDX-License-Identifier: BSD-3-Clause
#include "planner/searches/piper_knapsack.hpp"

#include <algorithm>

namespace troupe::planner {

namespace {

/// The sums of the rows so far.
struct point {
  double bytes = 0, seconds = 0;
  int previous = -1; // a point of the row before
  int option = 0;
};

/// Only points with less time than each point of fewer bytes.
std::vector<point> without_dominated(std::vector<point> points) {
  std::ranges::sort(points, [](const point& a, const point& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds;
  });
  std::vector<point> result;
  for (const auto& p : points)
    if (result.empty() || p.seconds < result.back().seconds)
      result.push_back(p);
  return result;
}

std::vector<int>
fastest_options(const std::vector<std::vector<knapsack_option>>& rows) {
  std::vector<int> result;
  for (const auto& row : rows) {
    const auto fastest =
      std::ranges::min_element(row, [](const auto& a, const auto& b) {
        return a.seconds != b.seconds ? a.seconds < b.seconds : a.bytes < b.bytes;
      });
    result.push_back(static_cast<int>(fastest - row.begin()));
  }
  return result;
}

} // namespace

std::optional<knapsack_choice>
best_options(const std::vector<std::vector<knapsack_option>>& rows, double memory) {
  knapsack_choice fastest{.options = fastest_options(rows)};
  double bytes = 0;
  std::vector<double> least_after(rows.size() + 1); // bytes of the rows from here on
  for (std::size_t r = rows.size(); r-- > 0;) {
    least_after[r] =
      least_after[r + 1] + std::ranges::min(rows[r], {}, &knapsack_option::bytes).bytes;
    const auto& chosen = rows[r][static_cast<std::size_t>(fastest.options[r])];
    fastest.seconds += chosen.seconds;
    bytes += chosen.bytes;
  }
  if (bytes <= memory)
    return fastest;
  if (least_after[0] > memory)
    return std::nullopt;
  std::vector<std::vector<point>> fronts{{{}}};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::vector<point> next;
    for (std::size_t p = 0; p < fronts[r].size(); ++p)
      for (std::size_t o = 0; o < rows[r].size(); ++o) {
        const point sum{fronts[r][p].bytes + rows[r][o].bytes,
                        fronts[r][p].seconds + rows[r][o].seconds, static_cast<int>(p),
                        static_cast<int>(o)};
        if (sum.bytes + least_after[r + 1] <= memory)
          next.push_back(sum);
      }
    fronts.push_back(without_dominated(std::move(next)));
  }
  if (fronts.back().empty())
    return std::nullopt;
  // The last point has the most bytes and the least time.
  knapsack_choice result{fronts.back().back().seconds, std::vector<int>(rows.size())};
  auto p = fronts.back().size() - 1;
  for (std::size_t r = rows.size(); r-- > 0;) {
    result.options[r] = fronts[r + 1][p].option;
    p = static_cast<std::size_t>(fronts[r + 1][p].previous);
  }
  return result;
}

} // namespace troupe::planner
