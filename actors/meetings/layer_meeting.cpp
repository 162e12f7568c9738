#include "actors/meetings/layer_meeting.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

layer_sharing::layer_sharing(const run_plan& plan, position where,
                             stage_tensors* tensors)
  : plan_(&plan),
    where_(where),
    tensors_(tensors),
    shares_parameters_(plan.shares_out(shared_out::parameters)),
    values_(plan.buckets_of(where)) {
  // nop
}

layer_sharing::messages layer_sharing::begin(op what, int version, bool begins_sum,
                                             std::vector<int> layers) {
  what_ = what;
  version_ = version;
  begins_sum_ = begins_sum;
  order_ = std::move(layers);
  return gathers(what) ? start(exchange_step::gather, order_.front()) : messages{};
}

bool layer_sharing::ready(int layer) const {
  const auto is_over = [](const place& p) { return p.instance < 0; };
  if (layer < 0)
    return std::ranges::all_of(gathering_, is_over)
           && std::ranges::all_of(summing_, is_over);
  return is_over(gathering_[place_of(layer)]) && is_over(summing_[place_of(layer)]);
}

layer_sharing::messages layer_sharing::enter(int layer) {
  const auto next = std::ranges::find(order_, layer) + 1;
  return gathers(what_) && next != order_.end() ? start(exchange_step::gather, *next)
                                                : messages{};
}

layer_sharing::messages layer_sharing::leave(int layer) {
  return sums(what_) ? start(exchange_step::sum, layer) : messages{};
}

layer_sharing::messages layer_sharing::start(exchange_step step, int layer) {
  const bool gather = step == exchange_step::gather;
  // Gathers have odd instances, so that a message says what it is for.
  const int instance = 2 * begun_++ + (gather ? 1 : 0);
  (gather ? gathering_ : summing_)[place_of(layer)] = {layer, instance};
  const auto& order = plan_->exchange->order_of(step);
  const auto part = even_part(order, where_.data, plan_->data,
                              values_[static_cast<std::size_t>(layer)], 0, instance);
  collective_memory memory;
  if (tensors_ != nullptr) {
    auto* const array = gather ? tensors_->place_to_gather(layer, version_)
                               : tensors_->whole_gradient(layer);
    memory = {array, array, &tensors_->to_replicas(step)};
  }
  return settled(step, under_way_.begin(part, memory));
}

layer_sharing::messages layer_sharing::take(collective_message message) {
  const auto step =
    message.instance % 2 == 0 ? exchange_step::sum : exchange_step::gather;
  return settled(step, under_way_.take(std::move(message)));
}

/// Looks what is over now: a sum is added to those of other microbatches, in their
/// order.
layer_sharing::messages layer_sharing::settled(exchange_step step,
                                               std::vector<collective_message> out) {
  const bool gather = step == exchange_step::gather;
  for (auto& p : gather ? gathering_ : summing_)
    if (p.instance >= 0 && !under_way_.is_under_way(p.instance)) {
      p.instance = -1;
      if (!gather && tensors_ != nullptr)
        tensors_->add_share(p.layer, begins_sum_);
    }
  messages result;
  for (auto& message : out)
    result.push_back({step, std::move(message)});
  return result;
}

} // namespace troupe
