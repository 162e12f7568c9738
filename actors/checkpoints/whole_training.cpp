// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/whole_training.hpp"

#include <algorithm>

namespace troupe {

std::vector<std::int64_t> updates_in(const run_plan& plan,
                                     const training_copies& copies) {
  std::int64_t most = 0; // also for layers without values to save
  for (const auto& one : copies.all)
    most = std::max(most, one.updates);
  std::vector<std::int64_t> result(plan.work->whole.layers.size(), most);
  for (const auto& one : copies.all)
    for (const auto& bucket : plan.layer_buckets(one.where))
      result[bucket.of_layer] = one.updates;
  return result;
}

whole_training::whole_training(const network<float>& of, int older, int moments)
  : whole_(of), older_(older), moments_(moments) {
  for (std::size_t l = 0; l < of.layers.size(); ++l)
    for (const auto& p : of.layers[l]->parameters())
      if (p.tied_to.empty())
        parameters_.emplace(p.name, std::pair{l, &p});
}

const parameter* whole_training::find(const std::string& name) const {
  const auto found = parameters_.find(name);
  return found == parameters_.end() ? nullptr : found->second.second;
}

whole_training::array_under_way& whole_training::at(const saved_array& array) {
  auto& result = arrays_[array];
  if (result.values.empty())
    for (const auto& l : whole_.layers) {
      result.values.emplace_back(static_cast<std::size_t>(l->bucket()));
      result.known.emplace_back(static_cast<std::size_t>(l->bucket()));
    }
  return result;
}

bool whole_training::has(const saved_array& array, const saved_piece& piece) const {
  const auto found = arrays_.find(array);
  if (found == arrays_.end())
    return false;
  const auto layer = parameters_.at(piece.of.name).first;
  const auto* const whole = parameters_.at(piece.of.name).second;
  const auto& known = found->second.known[layer];
  bool result = true;
  for_each_run(piece, [&](std::int64_t there, std::int64_t, std::int64_t count) {
    const auto first = known.begin() + whole->offset + there;
    result = result && std::find(first, first + count, false) == first + count;
  });
  return result;
}

std::string whole_training::put(const saved_array& array, const saved_piece& piece,
                                std::span<const float> values) {
  const auto found = parameters_.find(piece.of.name);
  if (found == parameters_.end())
    return "this network has no parameter '" + piece.of.name + "'";
  const auto layer = found->second.first;
  const auto* const whole = found->second.second;
  auto& to = at(array);
  auto& bucket = to.values[layer];
  auto& known = to.known[layer];
  bool fits = piece.values() == std::ssize(values), twice = false;
  for_each_run(piece, [&](std::int64_t there, std::int64_t here, std::int64_t count) {
    if (!fits || there < 0 || there + count > whole->values()) {
      fits = false;
      return;
    }
    const auto first = known.begin() + whole->offset + there;
    twice = twice || std::find(first, first + count, true) != first + count;
    std::fill_n(first, count, true);
    std::copy_n(values.begin() + here, count, bucket.begin() + whole->offset + there);
  });
  if (!fits)
    return "a piece of '" + piece.of.name + "' does not lie within it";
  return twice ? "values of '" + piece.of.name + "' are there twice" : "";
}

/// Fills in values that need no piece: older versions and tied parameters. Returns an
/// error that names the missing values, if any.
std::string whole_training::complete(const saved_array& array) {
  auto& these = at(array);
  const bool is_older = array.what == saved_array::kind::parameters && array.number > 0;
  for (const auto& [name, where] : parameters_) {
    const auto& [layer, p] = where;
    const auto first = these.known[layer].begin() + p->offset;
    const auto known = std::count(first, first + p->values(), true);
    if (known == p->values())
      continue;
    if (!is_older || known > 0)
      return name_of(array) + " has " + std::to_string(known) + " of the "
             + std::to_string(p->values()) + " values of '" + name + "'";
    std::copy_n(at({}).values[layer].begin() + p->offset, p->values(),
                these.values[layer].begin() + p->offset);
  }
  for (std::size_t l = 0; l < whole_.layers.size(); ++l)
    for (const auto& p : whole_.layers[l]->parameters())
      if (!p.tied_to.empty()) {
        const auto& [layer, other] = parameters_.at(p.tied_to);
        std::copy_n(these.values[layer].begin() + other->offset, p.values(),
                    these.values[l].begin() + p.offset);
      }
  return {};
}

tl::expected<saved_training, std::string> whole_training::finish() {
  using kind = saved_array::kind;
  saved_training result;
  for (int i = 0; i <= older_; ++i)
    if (auto wrong = complete({kind::parameters, i}); !wrong.empty())
      return tl::unexpected{std::move(wrong)};
  for (int i = 0; i < moments_; ++i) {
    if (auto wrong = complete({kind::moment, i}); !wrong.empty())
      return tl::unexpected{std::move(wrong)};
    result.moments.push_back(std::move(at({kind::moment, i}).values));
  }
  for (int i = 1; i <= older_; ++i)
    result.older.push_back(std::move(at({kind::parameters, i}).values));
  result.parameters = std::move(at({}).values);
  return result;
}

tl::expected<saved_training, std::string>
whole_of(const run_plan& plan, const training_copies& copies, savers who) {
  using kind = saved_array::kind;
  int older = 0;
  for (const auto& one : copies.all)
    for (const int age : one.ages)
      older = std::max(older, age);
  whole_training all{plan.work->whole, older,
                     optimizer::state_size(plan.work->optimizer)};
  std::string wrong;
  const auto put = [&](const saved_array& array, const std::vector<saved_piece>& pieces,
                       const buffer& values) {
    std::span<const float> left{values.data(),
                                static_cast<std::size_t>(values_of(pieces))};
    for (const auto& piece : pieces) {
      const auto count = static_cast<std::size_t>(piece.values());
      if (wrong.empty() && !all.has(array, piece))
        wrong = all.put(array, piece, left.first(count));
      left = left.subspan(count);
    }
  };
  for (const auto& one : copies.all) {
    const auto versions = pieces_of(plan, one.where, shared_out::parameters, who);
    for (std::size_t v = 0; v < one.versions.size(); ++v)
      put({kind::parameters, one.ages[v]}, versions, one.versions[v]);
    const auto moments = pieces_of(plan, one.where, shared_out::optimizer_state, who);
    for (std::size_t m = 0; m < one.moments.size(); ++m)
      put({kind::moment, static_cast<int>(m)}, moments, one.moments[m]);
  }
  if (!wrong.empty())
    return tl::unexpected{wrong};
  auto result = all.finish();
  if (result) {
    result->batches = copies.batches;
    result->updates = updates_in(plan, copies);
  }
  return result;
}

} // namespace troupe
