#include "schedules/timeline.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

namespace troupe {

namespace {

using nanoseconds = std::int64_t;
constexpr nanoseconds not_yet = -1;

/// When the results of the actions laid out so far were there.
class results {
public:
  results(const schedule& sch, const shape& dims, nanoseconds latency,
          update_barrier barrier)
    : where_(sch.where), dims_(dims), latency_(latency), barrier_(barrier) {
    const auto cells =
      static_cast<std::size_t>(dims.stages) * static_cast<std::size_t>(dims.total());
    for (auto& ends : ends_)
      ends.assign(cells, not_yet);
  }

  /// When the inputs of `a` that its rank does not make itself are there.
  nanoseconds ready(const action& a) const {
    switch (a.what) {
    case op::forward:
      return a.stage == 0 ? 0 : received(activation, a.stage - 1, a.microbatch);
    case op::backward:
    case op::input_gradient:
      return a.stage == dims_.stages - 1
               ? 0
               : received(gradient, a.stage + 1, a.microbatch);
    case op::weight_gradient:
      return 0;
    case op::update:
      return sums_of_others(a);
    }
    return not_yet;
  }

  void add(const action& a, nanoseconds end) {
    if (a.what == op::forward)
      at(activation, a.stage, a.microbatch) = end;
    if (a.what == op::backward || a.what == op::input_gradient)
      at(gradient, a.stage, a.microbatch) = end;
    if (a.what == op::backward || a.what == op::weight_gradient)
      at(sum, a.stage, a.microbatch) = end;
  }

private:
  enum kind { activation, gradient, sum };

  std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(dims_.total())
           + static_cast<std::size_t>(microbatch);
  }

  nanoseconds& at(kind what, int stage, int microbatch) {
    return ends_[what][cell(stage, microbatch)];
  }

  nanoseconds received(kind what, int from_stage, int microbatch) const {
    const auto end = ends_[what][cell(from_stage, microbatch)];
    return end == not_yet ? not_yet : end + latency_;
  }

  nanoseconds sums_of_others(const action& update) const {
    const bool all_stages = barrier_ == update_barrier::all_stages;
    if (!all_stages && replicas_of(where_) == 1)
      return 0;
    nanoseconds result = 0;
    const int first = update.microbatch / dims_.microbatches * dims_.microbatches;
    for (int s = all_stages ? 0 : update.stage;
         s < (all_stages ? dims_.stages : update.stage + 1); ++s)
      for (int m = first; m <= update.microbatch; ++m) {
        const auto end = ends_[sum][cell(s, m)];
        if (end == not_yet)
          return not_yet;
        result = std::max(result, end);
      }
    return result;
  }

  placement where_;
  shape dims_;
  nanoseconds latency_;
  update_barrier barrier_;
  std::array<std::vector<nanoseconds>, 3> ends_;
};

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

timeline lay_out(const schedule& sch, const shape& dims, const timeline& ran,
                 nanoseconds latency, update_barrier barrier) {
  results done{sch, dims, latency, barrier};
  timeline laid_out(ran.size());
  std::vector<nanoseconds> free_at(ran.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < ran.size(); ++rank)
      while (laid_out[rank].size() < ran[rank].size()) {
        const auto& [what, start, end] = ran[rank][laid_out[rank].size()];
        const auto inputs = done.ready(what);
        if (inputs == not_yet)
          break;
        const auto begin = std::max(inputs, free_at[rank]);
        free_at[rank] = begin + (end - start);
        laid_out[rank].push_back({what, begin, free_at[rank]});
        done.add(what, free_at[rank]);
        moved = true;
      }
  }
  for (std::size_t rank = 0; rank < ran.size(); ++rank)
    if (laid_out[rank].size() < ran[rank].size())
      throw std::logic_error("rank " + std::to_string(rank) + " waits for ever at "
                             + to_string(ran[rank][laid_out[rank].size()].what, true));
  return laid_out;
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
