// SPDX-License-Identifier: BSD-3-Clause
#include "actors/inference/cached_stage.hpp"

#include <algorithm>
#include <string>

namespace troupe {

namespace {

bool is_last(const inference_plan& plan, int stage) {
  return stage + 1 == plan.stages();
}

/// The stage's layers for passes of `length` tokens, without the head.
layer_list<float> layers_at(const inference_plan& plan, int stage,
                            std::int64_t length) {
  const auto whole =
    length == plan.whole.rows ? plan.whole : of_length(plan.whole, length);
  return {whole.layers.begin() + plan.first_layer(stage),
          whole.layers.begin() + plan.end_layer(stage)
            - (is_last(plan, stage) ? 1 : 0)};
}

layer_list<float> head_of(const inference_plan& plan, int stage) {
  if (!is_last(plan, stage))
    return {};
  return {of_length(plan.whole, 1).layers.back()};
}

/// All layers that ever run in the stage, at the greatest length.
layer_list<float> largest_layers(const inference_plan& plan, int stage,
                                 std::int64_t length) {
  auto result = layers_at(plan, stage, length);
  for (const auto& head : head_of(plan, stage))
    result.push_back(head);
  return result;
}

std::int64_t cache_of(const layer_list<float>& layers) {
  std::int64_t result = 0;
  for (const auto& l : layers)
    result += padded(l->cached_values());
  return result;
}

/// Values of the result for the upper neighbour.
std::int64_t values_above(const inference_plan& plan, int stage, std::int64_t length) {
  return is_last(plan, stage) ? plan.whole.classes : length * plan.whole.options.width;
}

std::int64_t values_before_head(const inference_plan& plan, int stage,
                                std::int64_t length) {
  return is_last(plan, stage) ? length * plan.whole.options.width : 0;
}

} // namespace

cached_stage::cached_stage(const inference_plan& plan, int stage, int sequences,
                           const std::set<std::int64_t>& lengths,
                           stream& compute_stream, memory_account& account)
  : stream_(compute_stream),
    width_(plan.whole.options.width),
    weights_(plan, stage, account),
    head_(head_of(plan, stage)),
    workspace_(largest_layers(plan, stage, *lengths.rbegin()), 1,
               compute_stream.threads(), account),
    before_head_(values_before_head(plan, stage, *lengths.rbegin()), account),
    cache_(cache_of(layers_at(plan, stage, 1))),
    above_("activations above stage " + std::to_string(stage), portions_between,
           values_above(plan, stage, *lengths.rbegin()), account) {
  for (const auto length : lengths)
    layers_.emplace(length, layers_at(plan, stage, length));
  std::int64_t end = 0;
  for (const auto& l : layers_.begin()->second) {
    cache_of_.push_back(end);
    end += padded(l->cached_values());
  }
  caches_ = {sequences * cache_, account};
}

std::int64_t cached_stage::bytes(const inference_plan& plan, int stage, int sequences,
                                 const std::set<std::int64_t>& lengths) {
  const auto length = *lengths.rbegin();
  const auto values = sequences * cache_of(layers_at(plan, stage, 1))
                      + values_before_head(plan, stage, length)
                      + portions_between * padded(values_above(plan, stage, length));
  return stage_weights::bytes(plan, stage)
         + forward_buffers::bytes(largest_layers(plan, stage, length), 1,
                                  plan.team_of(stage))
         + values * std::int64_t{sizeof(float)};
}

void cached_stage::forward(const portion& in, portion& out) {
  const auto& layers = layers_.at(in.length);
  std::vector<float*> caches;
  for (const auto offset : cache_of_)
    caches.push_back(caches_.data() + in.number * cache_ + offset);
  frame<float> f{.samples = 1,
                 .tokens = in.values.integers(),
                 .x = in.values.data(),
                 .y = head_.empty() ? out.values.data() : before_head_.data(),
                 .compute_stream = &stream_,
                 .past = in.past};
  const auto parameters = weights_.buckets();
  workspace_.forward(layers, f, parameters, caches);
  if (head_.empty())
    return;
  f.tokens = nullptr;
  f.x = before_head_.data() + (in.length - 1) * width_;
  f.y = out.values.data();
  workspace_.forward(head_, f, parameters.last(1));
}

double cached_stage::operations(const portion& in) const {
  double result = 0;
  for (const auto& l : layers_.at(in.length))
    result += l->operations();
  for (const auto& head : head_)
    result += head->operations();
  return result;
}

} // namespace troupe
