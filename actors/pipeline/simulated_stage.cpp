#include "actors/pipeline/simulated_stage.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

simulated_stage::simulated_stage(const run_plan& plan, position where)
  : plan_(&plan), has_experts_(!plan.experts_of(where.stage).empty()) {
  // nop
}

std::vector<buffer> simulated_stage::gradients() const {
  return std::vector<buffer>(static_cast<std::size_t>(plan_->sizes.buckets));
}

pass_pieces<float> simulated_stage::pieces(const pass_request& pass) {
  using kind = shard_collective<float>::kind;
  const op what = pass.what.what;
  const bool reads = what != op::weight_gradient; // what others may have to make first
  const bool meets = plan_->tensor > 1 && reads;
  const bool asks_experts = has_experts_ && reads;
  const bool by_sequence = plan_->sequence_parallel;
  const int sums = meets ? plan_->sizes.sums : asks_experts ? 2 : 1;
  const int layers = pass.by_layer ? plan_->sizes.buckets : 1;
  const int count = sums * layers;
  // At least a value to each of so many, so that messages take their latency.
  const auto values_of = [](double bytes, int each) {
    return std::max<std::int64_t>(std::llround(bytes / sizeof(float)), each);
  };
  const auto& sizes = plan_->sizes;
  const auto values = values_of(sizes.sum, plan_->tensor),
             gathered = values_of(sizes.stored_bytes(sizes.sum), plan_->tensor),
             rows = values_of(sizes.experts, plan_->expert);
  pass_pieces<float> result;
  for (int i = 0; i < count; ++i) {
    const int layer = what == op::forward ? i / sums : layers - 1 - i / sums;
    if (meets && by_sequence && i % layers == 0)
      // A backward gathers the norm's output again, beside its gradient.
      result.push_back({.layer = layer,
                        .share = 0,
                        .then = {kind::gather, nullptr,
                                 what == op::forward ? gathered : 2 * gathered}});
    auto& piece = result.emplace_back();
    piece.share = 1.0 / count;
    piece.layer = layer;
    if (meets && (i + 1) % layers == 0)
      piece.then = {by_sequence ? kind::scatter : kind::sum, nullptr, values};
    if (asks_experts && i == 0)
      piece.then = {kind::experts, nullptr, rows};
    if (pass.by_layer && (i + 1) % sums == 0)
      piece.completes = {layer};
  }
  if (result.back().then.what != kind::none) {
    const int layer = result.back().layer;
    result.push_back({.layer = layer, .share = 0}); // that waits for the last sum
  }
  return result;
}

} // namespace troupe
