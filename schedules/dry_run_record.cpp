// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/dry_run_record.hpp"

#include <algorithm>

namespace troupe {

namespace {

std::int64_t length_of(op operation) {
  return operation == op::backward ? 2 : 1;
}

} // namespace

std::int64_t dry_run_record::run(int rank, const action& a, std::int64_t ready) {
  const auto r = static_cast<std::size_t>(rank);
  const auto start = std::max(ready, free_at_[r]), end = start + length_of(a.op);
  ran_[r].push_back({a, start, end});
  return free_at_[r] = end;
}

std::string dry_run_record::draw(int failed_rank,
                                 const std::vector<std::optional<action>>& next) const {
  constexpr std::int64_t columns = 16;
  constexpr int rows_around = 4;
  const auto end = *std::ranges::max_element(free_at_);
  // The error may lie long before the last actions of other ranks.
  const auto shown_to =
    std::min(end, free_at_[static_cast<std::size_t>(failed_rank)] + 4);
  const auto from = std::max<std::int64_t>(shown_to - columns, 0);
  const int first = std::max(0, failed_rank - rows_around),
            last =
              std::min(static_cast<int>(ran_.size()), failed_rank + rows_around + 1);
  std::vector<std::vector<std::string>> rows;
  std::size_t width = 0;
  for (int rank = first; rank < last; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    auto& cells = rows.emplace_back(static_cast<std::size_t>(shown_to - from), ".");
    for (const auto& [ran_action, start, stop] : ran_[r])
      for (auto t = std::max(start, from); t < std::min(stop, shown_to); ++t)
        cells[static_cast<std::size_t>(t - from)] =
          t == start ? cell_of(ran_action, several_stages_) : "=";
    if (next[r] && free_at_[r] <= shown_to) {
      const auto name = cell_of(*next[r], several_stages_);
      const auto column =
        static_cast<std::size_t>(std::max(free_at_[r] - from, std::int64_t{0}));
      cells.resize(std::max(cells.size(), column + 1), ".");
      cells[column] = rank == failed_rank ? "[" + name + "]" : "?" + name;
    }
    for (const auto& cell : cells)
      width = std::max(width, cell.size() + 1);
  }
  const auto digits = std::to_string(last - 1).size();
  std::string result = first > 0 ? "  ..\n" : "";
  for (int rank = first; rank < last; ++rank) {
    auto name = std::to_string(rank);
    name.resize(digits, ' ');
    result +=
      (rank == failed_rank ? "> rank " : "  rank ") + name + (from > 0 ? "  .." : "  ");
    for (auto& cell : rows[static_cast<std::size_t>(rank - first)]) {
      cell.resize(width, ' ');
      result += cell;
    }
    result.erase(result.find_last_not_of(' ') + 1);
    result += '\n';
  }
  return last < static_cast<int>(ran_.size()) ? result + "  ..\n" : result;
}

} // namespace troupe
