// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/gathered_state.hpp"

#include "models/optimizer_catalog.hpp"
#include "plan/stage_buckets.hpp"

#include <algorithm>

namespace troupe {

std::vector<std::int64_t> updates_in(const run_plan& plan,
                                     const training_copies& copies) {
  std::int64_t most = 0; // also for layers without values to save
  for (const auto& stage : copies.stages)
    most = std::max(most, stage.updates);
  std::vector<std::int64_t> result(plan.work->whole.layers.size(), most);
  for (const auto& stage : copies.stages)
    for (const auto& bucket : layer_buckets(plan, stage.where))
      result[bucket.of_layer] = stage.updates;
  return result;
}

gathered_state::gathered_state(const network<float>& whole, int older,
                               std::vector<std::string> state)
  : whole_(whole), older_(older), state_(std::move(state)) {
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& p : whole.layers[l]->parameters())
      if (p.tied_to.empty())
        parameters_.emplace(p.name, std::pair{l, &p});
}

const parameter* gathered_state::find(const std::string& name) const {
  const auto entry = parameters_.find(name);
  return entry == parameters_.end() ? nullptr : entry->second.second;
}

gathered_state::partial_array& gathered_state::entry_of(const saved_array& array) {
  auto& result = arrays_[array];
  if (result.values.empty())
    for (const auto& l : whole_.layers) {
      result.values.emplace_back(static_cast<std::size_t>(l->bucket()));
      result.known.emplace_back(static_cast<std::size_t>(l->bucket()));
    }
  return result;
}

bool gathered_state::has(const saved_array& array, const saved_piece& piece) const {
  const auto entry = arrays_.find(array);
  if (entry == arrays_.end())
    return false;
  const auto layer = parameters_.at(piece.part.name).first;
  const auto* const whole = parameters_.at(piece.part.name).second;
  const auto& known = entry->second.known[layer];
  bool result = true;
  for_each_run(piece, [&](std::int64_t whole_offset, std::int64_t, std::int64_t count) {
    const auto first = known.begin() + whole->offset + whole_offset;
    result = result && std::find(first, first + count, false) == first + count;
  });
  return result;
}

std::string gathered_state::put(const saved_array& array, const saved_piece& piece,
                                std::span<const float> values) {
  const auto entry = parameters_.find(piece.part.name);
  if (entry == parameters_.end())
    return "the network has no parameter '" + piece.part.name + "'";
  const auto layer = entry->second.first;
  const auto* const whole = entry->second.second;
  auto& to = entry_of(array);
  auto& bucket = to.values[layer];
  auto& known = to.known[layer];
  bool fits = piece.values() == std::ssize(values), twice = false;
  for_each_run(piece, [&](std::int64_t whole_offset, std::int64_t piece_offset,
                          std::int64_t count) {
    if (!fits || whole_offset < 0 || whole_offset + count > whole->values()) {
      fits = false;
      return;
    }
    const auto first = known.begin() + whole->offset + whole_offset;
    twice = twice || std::find(first, first + count, true) != first + count;
    std::fill_n(first, count, true);
    std::copy_n(values.begin() + piece_offset, count,
                bucket.begin() + whole->offset + whole_offset);
  });
  if (!fits)
    return "a piece of '" + piece.part.name + "' does not lie within it";
  return twice ? "values of '" + piece.part.name + "' occur twice" : "";
}

/// Fills in values that need no piece: older versions and tied parameters. Returns an
/// error that names the missing values, if any.
std::string gathered_state::complete(const saved_array& array) {
  auto& target = entry_of(array);
  const bool is_older = array.type == saved_array::kind::parameters && array.number > 0;
  for (const auto& [name, where] : parameters_) {
    const auto& [layer, p] = where;
    const auto first = target.known[layer].begin() + p->offset;
    const auto known = std::count(first, first + p->values(), true);
    if (known == p->values())
      continue;
    if (!is_older || known > 0)
      return name_of(array) + " has " + std::to_string(known) + " of the "
             + std::to_string(p->values()) + " values of '" + name + "'";
    std::copy_n(entry_of({}).values[layer].begin() + p->offset, p->values(),
                target.values[layer].begin() + p->offset);
  }
  for (std::size_t l = 0; l < whole_.layers.size(); ++l)
    for (const auto& p : whole_.layers[l]->parameters())
      if (!p.tied_to.empty()) {
        const auto& [layer, source] = parameters_.at(p.tied_to);
        std::copy_n(target.values[layer].begin() + source->offset, p.values(),
                    target.values[l].begin() + p.offset);
      }
  return {};
}

tl::expected<training_state, std::string> gathered_state::finish() {
  using kind = saved_array::kind;
  training_state result;
  for (int i = 0; i <= older_; ++i)
    if (auto error = complete({kind::parameters, i}); !error.empty())
      return tl::unexpected{std::move(error)};
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const saved_array array{kind::state, static_cast<int>(i), state_[i]};
    if (auto error = complete(array); !error.empty())
      return tl::unexpected{std::move(error)};
    result.state.push_back({state_[i], std::move(entry_of(array).values)});
  }
  for (int i = 1; i <= older_; ++i)
    result.older.push_back(std::move(entry_of({kind::parameters, i}).values));
  result.parameters = std::move(entry_of({}).values);
  return result;
}

tl::expected<training_state, std::string>
whole_of(const run_plan& plan, const training_copies& copies, savers saver) {
  using kind = saved_array::kind;
  int older = 0;
  for (const auto& stage : copies.stages)
    for (const int age : stage.ages)
      older = std::max(older, age);
  const auto state = state_names(plan.work->optimizer);
  gathered_state assembled{plan.work->whole, older, state};
  std::string error;
  const auto put = [&](const saved_array& array, const std::vector<saved_piece>& pieces,
                       const buffer& values) {
    std::span<const float> left{values.data(),
                                static_cast<std::size_t>(values_of(pieces))};
    for (const auto& piece : pieces) {
      const auto count = static_cast<std::size_t>(piece.values());
      if (error.empty() && !assembled.has(array, piece))
        error = assembled.put(array, piece, left.first(count));
      left = left.subspan(count);
    }
  };
  for (const auto& stage : copies.stages) {
    const auto versions = pieces_of(plan, stage.where, shared_out::parameters, saver);
    for (std::size_t v = 0; v < stage.versions.size(); ++v)
      put({kind::parameters, stage.ages[v]}, versions, stage.versions[v]);
    const auto pieces =
      pieces_of(plan, stage.where, shared_out::optimizer_state, saver);
    for (std::size_t i = 0; i < stage.state.size(); ++i)
      put({kind::state, static_cast<int>(i), state[i]}, pieces, stage.state[i]);
  }
  if (!error.empty())
    return tl::unexpected{error};
  auto result = assembled.finish();
  if (result) {
    result->batches = copies.batches;
    result->updates = updates_in(plan, copies);
  }
  return result;
}

} // namespace troupe
