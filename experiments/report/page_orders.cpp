// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/page_orders.hpp"

#include "plan/run_plan.hpp"
#include "schedules/program.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// Limit of the actions in all orders of a schedule on a page: about 300 kB.
constexpr std::int64_t most_ordered = 60'000;

std::string text_of(const action& a) {
  std::string text = a.direction > 0 ? std::to_string(a.direction) + ":" : "";
  text += std::to_string(a.stage) + letter_of(a.op) + std::to_string(a.microbatch);
  return text + (a.pair == in_pair::first ? "+" : "");
}

/// The sizes of a run with the given numbers of ranks and microbatches, if the schedule
/// allows such sizes. More than three batches would only repeat.
std::optional<shape> sizes_of(const schedule& sch, const shape& dims, int ranks,
                              int microbatches) {
  const shape result{stages_on(sch.where, ranks), microbatches,
                     std::min(dims.steps, 3)};
  if (ranks < 1 || microbatches < 1 || result.stages > most_stages
      || !validation_error(sch, result).empty() || ranks_of(sch.where, result) != ranks)
    return {};
  return result;
}

std::int64_t actions_of(const shape& dims) {
  return std::int64_t{3} * dims.stages * dims.total();
}

std::string order_json(const schedule& sch, const shape& dims) {
  std::string rows;
  const int ranks = ranks_of(sch.where, dims);
  for (int rank = 0; rank < ranks; ++rank) {
    std::string row;
    if (!sch.local_rule())
      for (const auto& a : generate(sch, dims, rank))
        row += (row.empty() ? "" : " ") + text_of(a);
    rows += (rank == 0 ? "\"" : ",\"") + row + "\"";
  }
  return "{\"ranks\":" + std::to_string(ranks)
         + ",\"stages\":" + std::to_string(dims.stages)
         + ",\"microbatches\":" + std::to_string(dims.microbatches)
         + ",\"steps\":" + std::to_string(dims.steps) + ",\"rows\":[" + rows + "]}";
}

} // namespace

std::string orders_json(const run_plan& plan) {
  const auto& [sch, dims] = std::pair{plan.sch, plan.dims};
  const int ranks = plan.ranks_of_pipeline();
  std::vector<shape> candidates;
  for (const auto& [times, parts] : {std::pair{1, 1}, {1, 2}, {2, 1}, {4, 1}})
    for (const auto& [more, fewer] : {std::pair{1, 1}, {2, 1}, {4, 1}, {1, 2}})
      if (ranks * times % parts == 0 && dims.microbatches * more % fewer == 0)
        if (const auto sizes = sizes_of(sch, dims, ranks * times / parts,
                                        dims.microbatches * more / fewer))
          candidates.push_back(*sizes);
  std::string text;
  std::int64_t budget = most_ordered;
  for (const auto& sizes : candidates) {
    if (actions_of(sizes) > budget) {
      if (text.empty()) // the page starts from the order of the run
        break;
      continue;
    }
    budget -= actions_of(sizes);
    text += (text.empty() ? "[" : ",\n") + order_json(sch, sizes);
  }
  return (text.empty() ? "[" : text) + "]";
}

} // namespace troupe
