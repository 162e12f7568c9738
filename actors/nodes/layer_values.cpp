// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/layer_values.hpp"

#include "models/optimizer_catalog.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace troupe {

namespace {

std::vector<layer_key> keys(int older, int state, const std::vector<int>& layers) {
  std::vector<layer_key> result;
  const auto add = [&](layer_key::kind type, int count) {
    for (int number = 0; number < count; ++number)
      for (const int layer : layers)
        result.push_back({type, static_cast<std::uint32_t>(number),
                          static_cast<std::uint32_t>(layer)});
  };
  add(layer_key::kind::parameters, 1);
  add(layer_key::kind::older, older);
  add(layer_key::kind::state, state);
  return result;
}

} // namespace

std::vector<unsigned char> to_text(const layer_key& key) {
  const std::array<std::uint32_t, 3> words{static_cast<std::uint32_t>(key.type),
                                           key.number, key.layer};
  std::vector<unsigned char> result(sizeof words);
  std::memcpy(result.data(), words.data(), sizeof words);
  return result;
}

tl::expected<layer_key, std::string>
layer_key_from(std::span<const unsigned char> text) {
  std::array<std::uint32_t, 3> words{};
  if (text.size() != sizeof words)
    return tl::unexpected{
      std::string{"it sent a layer's values with a header of the wrong size"}};
  std::memcpy(words.data(), text.data(), sizeof words);
  return layer_key{static_cast<layer_key::kind>(words[0]), words[1], words[2]};
}

std::vector<layer_key> keys_of(const run_plan& plan, const std::vector<int>& layers) {
  return keys(plan.dims.older, static_cast<int>(plan.work->earlier.state.size()),
              layers);
}

std::vector<float> values_of(const run_plan& plan, const layer_key& key) {
  const auto& work = *plan.work;
  std::vector<float> result(
    static_cast<std::size_t>(work.whole.layers[key.layer]->bucket()));
  const auto& source = key.type == layer_key::kind::parameters ? work.weights
                       : key.type == layer_key::kind::older
                         ? work.earlier.older[key.number]
                         : work.earlier.state[key.number].values;
  source(key.layer, result.data());
  return result;
}

layer_values::layer_values(const mail::prepare& facts) : facts_(facts) {
  if (facts.layers.empty())
    return;
  for (const auto& key : keys(facts.older, facts.state_arrays, facts.layers))
    missing_.insert(key);
}

void layer_values::apply_to(run_plan& plan) {
  auto& work = *plan.work;
  for (const auto& l : work.whole.layers)
    sizes_.push_back(l->bucket());
  plan.dims.steps -= facts_.batches_before;
  plan.dims.batches_before = facts_.batches_before;
  plan.dims.older = facts_.older;
  const auto source = [this](layer_key::kind type, int number) -> weight_source {
    return [this, type, number](std::size_t layer, float* bucket) {
      read(
        {type, static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(layer)},
        bucket);
    };
  };
  if (!facts_.layers.empty())
    work.weights = source(layer_key::kind::parameters, 0);
  if (facts_.batches_before == 0)
    return;
  work.earlier = {.updates = facts_.updates};
  for (int i = 0; i < facts_.older; ++i)
    work.earlier.older.push_back(source(layer_key::kind::older, i));
  const auto state = state_names(work.optimizer);
  for (int i = 0; i < facts_.state_arrays; ++i)
    work.earlier.state.push_back(
      {state[static_cast<std::size_t>(i)], source(layer_key::kind::state, i)});
}

void layer_values::read(layer_key key, float* to) const {
  const auto entry = arrays_.find(key);
  if (entry == arrays_.end())
    throw std::logic_error("values of layer " + std::to_string(key.layer)
                           + " have not come");
  std::ranges::copy(entry->second, to);
}

tl::expected<std::span<float>, std::string>
layer_values::buffer_for(std::span<const unsigned char> text, std::size_t count) {
  const auto key = layer_key_from(text);
  const std::lock_guard guard{lock_};
  if (!key || !missing_.contains(*key) || key->layer >= sizes_.size()
      || count != static_cast<std::size_t>(sizes_[key->layer]))
    return tl::unexpected{std::string{"it sent values that this side did not request"}};
  coming_ = *key;
  auto& target = arrays_[*key];
  target.resize(count);
  return std::span{target};
}

void layer_values::mark_received() {
  {
    const std::lock_guard guard{lock_};
    missing_.erase(coming_);
  }
  news_.notify_all();
}

void layer_values::forget() {
  const std::lock_guard guard{lock_};
  arrays_.clear();
}

bool layer_values::complete(std::chrono::milliseconds timeout) {
  std::unique_lock guard{lock_};
  return news_.wait_for(guard, timeout, [this] { return missing_.empty(); });
}

} // namespace troupe
