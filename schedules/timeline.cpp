#include "schedules/timeline.hpp"

#include <algorithm>
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

} // namespace

std::string draw(const timeline& drawn, int max_columns) {
  const auto end = end_of(drawn);
  const auto unit = std::max(unit_of(drawn), (end + max_columns - 1) / max_columns);
  std::size_t width = 0;
  for (const auto& row : drawn)
    for (const auto& cell : row)
      width = std::max(width, to_string(cell.what).size() + 1);
  std::string result;
  for (std::size_t rank = 0; rank < drawn.size(); ++rank) {
    const auto columns = static_cast<std::size_t>((end + unit - 1) / unit);
    std::vector<std::string> cells(columns, ".");
    for (const auto& [what, start, stop] : drawn[rank]) {
      const auto first = static_cast<std::size_t>(start / unit);
      const auto last = static_cast<std::size_t>((stop + unit - 1) / unit);
      for (auto c = first; c < last; ++c)
        cells[c] = c == first ? to_string(what) : "=";
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
