#include "schedules/timeline.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <stdexcept>

namespace troupe {

namespace {

using nanoseconds = std::int64_t;
enum kind { activation, gradient, come };
static_assert(come == kinds_of_messages);

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

void add_messages(int stages, std::int64_t pipeline, const action& a, bool first,
                  bool last, time_layout::part& to) {
  const auto message = [&](kind what, int stage) {
    return milestone{what, pipeline * stages + stage, a.microbatch};
  };
  if (a.what == op::forward) {
    if (first && a.stage > 0)
      to.after.push_back(message(activation, a.stage));
    if (last && a.stage + 1 < stages)
      to.then.push_back(message(activation, a.stage + 1));
  } else if (a.what == op::backward || a.what == op::input_gradient) {
    if (first && a.stage + 1 < stages)
      to.after.push_back(message(gradient, a.stage));
    if (last && a.stage > 0)
      to.then.push_back(message(gradient, a.stage - 1));
  }
}

timeline lay_out(const schedule& sch, const shape& dims, const timeline& ran) {
  const int directions = replicas_of(sch.where);
  timeline result(ran.size());
  const auto is_shared = [&](const timed_action& a) {
    return a.what.what == op::update && directions > 1;
  };
  const auto coming = [&](const action& update) { // of both directions to an update
    return milestone{come, update.stage, update.microbatch, directions, directions};
  };
  std::vector<std::deque<timed_action>> todo(ran.size()); // a part each
  time_layout layout{ran.size(),
                     [&](std::size_t rank, nanoseconds start, nanoseconds end) {
                       if (const auto& a = todo[rank].front(); a.start >= 0)
                         result[rank].push_back({a.what, start, end});
                       todo[rank].pop_front();
                     }};
  for (std::size_t rank = 0; rank < ran.size(); ++rank) {
    const auto& row = ran[rank];
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto& [what, start, end] = row[i];
      if (is_shared(row[i]) && (i == 0 || !is_shared(row[i - 1])))
        for (auto u = i; u < row.size() && is_shared(row[u]); ++u) {
          todo[rank].push_back({row[u].what, -1, -1});
          layout.add(rank, {0, {}, {coming(row[u].what)}});
        }
      time_layout::part part{end - start, {}, {}};
      add_messages(dims.stages, what.replica, what, true, true, part);
      if (is_shared(row[i]))
        part.after.push_back(coming(what));
      todo[rank].push_back(row[i]);
      layout.add(rank, std::move(part));
    }
  }
  if (const auto rank = layout.waiting())
    throw std::logic_error("rank " + std::to_string(*rank) + " waits for ever at "
                           + to_string(todo[*rank].front().what, true));
  return result;
}

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
