#pragma once

#include "actors/checkpoints/whole_training.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe {

/// What goes on from copies of all stages, without files between.
inline saved_training whole_of(const run_plan& plan, const training_copies& copies) {
  using kind = saved_array::kind;
  int older = 0;
  for (const auto& one : copies.all)
    for (const int age : one.ages)
      older = std::max(older, age);
  whole_training all{plan.work->whole, older,
                     optimizer::state_size(plan.work->optimizer)};
  const auto put = [&](const saved_array& array, const std::vector<saved_piece>& pieces,
                       const buffer& values) {
    std::span<const float> left{values.data(),
                                static_cast<std::size_t>(values_of(pieces))};
    for (const auto& piece : pieces) {
      const auto count = static_cast<std::size_t>(piece.values());
      if (const auto wrong = all.put(array, piece, left.first(count)); !wrong.empty())
        throw std::logic_error(wrong);
      left = left.subspan(count);
    }
  };
  for (const auto& one : copies.all) {
    const auto versions = pieces_of(plan, one.where, shared_out::parameters);
    for (std::size_t v = 0; v < one.versions.size(); ++v)
      put({kind::parameters, one.ages[v]}, versions, one.versions[v]);
    const auto moments = pieces_of(plan, one.where, shared_out::optimizer_state);
    for (std::size_t m = 0; m < one.moments.size(); ++m)
      put({kind::moment, static_cast<int>(m)}, moments, one.moments[m]);
  }
  auto result = all.finish();
  if (!result)
    throw std::logic_error(result.error());
  result->batches = copies.batches;
  result->updates = updates_in(plan, copies);
  return std::move(*result);
}

} // namespace troupe
