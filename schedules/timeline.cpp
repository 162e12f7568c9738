// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/timeline.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace troupe {

namespace {

using nanoseconds = std::int64_t;

/// The greatest duration that divides all starts and ends.
nanoseconds unit_of(const timeline& drawn) {
  nanoseconds unit = 0;
  for (const auto& row : drawn)
    for (const auto& cell : row)
      unit = std::gcd(unit, std::gcd(cell.start, cell.end));
  return std::max<nanoseconds>(unit, 1);
}

nanoseconds end_of(const timeline& drawn) {
  nanoseconds end = 0;
  for (const auto& row : drawn)
    for (const auto& cell : row)
      end = std::max(end, cell.end);
  return end;
}

/// Whether a rank runs several stages of one direction, so that names must include the
/// stage.
bool has_several_stages(const timeline& drawn) {
  for (const auto& row : drawn) {
    std::map<int, int> stage_of; // by direction
    for (const auto& cell : row)
      if (stage_of.try_emplace(cell.action.direction, cell.action.stage).first->second
          != cell.action.stage)
        return true;
  }
  return false;
}

/// The names of a row's actions. The first action of a pair that ran as one has the
/// names of both.
std::vector<std::string> names_of(const std::vector<timed_action>& row,
                                  bool with_stage) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < row.size(); ++i) {
    result.push_back(cell_of(row[i].action, with_stage));
    if (row[i].action.pair == in_pair::first && i + 1 < row.size()
        && row[i + 1].start == row[i + 1].end)
      result.back() += cell_of(row[i + 1].action, with_stage);
  }
  return result;
}

} // namespace

std::string cell_of(const action& a, bool with_stage) {
  return (with_stage ? std::to_string(a.stage) : "") + to_string(a);
}

std::string draw(const timeline& drawn, int max_columns) {
  const auto end = end_of(drawn);
  const auto unit = std::max(unit_of(drawn), (end + max_columns - 1) / max_columns);
  const bool with_stage = has_several_stages(drawn);
  std::size_t width = 0;
  for (const auto& row : drawn)
    for (const auto& name : names_of(row, with_stage))
      width = std::max(width, name.size() + 1);
  std::string result;
  for (std::size_t rank = 0; rank < drawn.size(); ++rank) {
    const auto columns = static_cast<std::size_t>((end + unit - 1) / unit);
    std::vector<std::string> cells(columns, ".");
    const auto names = names_of(drawn[rank], with_stage);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto& [ran_action, start, stop] = drawn[rank][i];
      const auto first = static_cast<std::size_t>(start / unit);
      const auto last = static_cast<std::size_t>((stop + unit - 1) / unit);
      for (auto c = first; c < last; ++c)
        cells[c] = c == first ? names[i] : "=";
    }
    result += "rank " + std::to_string(rank) + (rank < 10 ? "  " : " ");
    for (auto& cell : cells) {
      cell.resize(width, ' ');
      result += cell;
    }
    result.erase(result.find_last_not_of(' ') + 1);
    result += '\n';
  }
  return result;
}

} // namespace troupe
