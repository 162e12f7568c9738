// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/simulated_stage.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

simulated_stage::simulated_stage(const run_plan& plan, position where)
  : plan_(&plan),
    stage_(where.stage),
    has_experts_(!plan.experts_of(where.stage).empty()) {
  // nop
}

std::vector<buffer> simulated_stage::gradients() const {
  return std::vector<buffer>(static_cast<std::size_t>(plan_->sizes.buckets));
}

namespace {

using kind = shard_collective<float>::kind;

/// Builds the pieces of a simulated stage's pass, layer by layer.
class simulated_pass {
public:
  /// \param plan outlives the object
  /// \param layers number of layers with separate pieces; 1 if one piece may cover all
  /// layers
  simulated_pass(const run_plan& plan, const pass_request& pass, bool has_experts,
                 int layers)
    : plan_(plan),
      by_layer_(pass.by_layer),
      layers_(layers),
      reads_(pass.what.what != op::weight_gradient),
      meets_(plan.tensor > 1 && reads_),
      asks_experts_(has_experts),
      sums_(meets_        ? plan.sizes.sums
            : has_experts ? 2
                          : 1) {
    // nop
  }

  /// Adds pieces for layers [first, last): forwards in increasing order if `up`, else
  /// backwards from the last layer down.
  void add(bool up, int first, int last, bool recomputes = false) {
    const auto& sizes = plan_.sizes;
    const auto sum = values_of(sizes.sum, plan_.tensor),
               gathered = values_of(sizes.stored_bytes(sizes.sum), plan_.tensor),
               rows = values_of(sizes.experts, plan_.expert);
    const int before = (up ? first : layers_ - last) * sums_;
    for (int i = before; i < before + (last - first) * sums_; ++i) {
      const int layer = up ? i / sums_ : layers_ - 1 - i / sums_;
      if (meets_ && plan_.sequence_parallel && i % layers_ == 0)
        // A backward gathers the norm's output again, besides the output's gradient.
        made_.push_back({.layer = layer,
                         .share = 0,
                         .then = {kind::gather, nullptr, up ? gathered : 2 * gathered},
                         .recomputes = recomputes});
      auto& piece = made_.emplace_back();
      piece.share = 1.0 / (layers_ * sums_);
      piece.layer = layer;
      piece.recomputes = recomputes;
      if (meets_ && (i + 1) % layers_ == 0)
        piece.then = {plan_.sequence_parallel ? kind::scatter : kind::sum, nullptr,
                      sum};
      if (asks_experts_ && i == 0)
        piece.then = {kind::experts, nullptr, rows};
      if (by_layer_ && !recomputes && (i + 1) % sums_ == 0)
        piece.completes = {layer};
    }
  }

  /// Returns the pieces, with shares of the action's cost. The whole action costs
  /// `total_forwards` forwards. A pass through all layers costs `pass_forwards`; pieces
  /// that recompute cost their part of one forward. An action never ends with a
  /// meeting: a piece without cost follows the last one.
  pass_pieces<float> made(double all, double of_pass = 1) && {
    for (auto& piece : made_)
      piece.share *= (piece.recomputes ? 1 : of_pass) / all;
    if (made_.back().then.what != kind::none)
      made_.push_back({.layer = made_.back().layer, .share = 0});
    return std::move(made_);
  }

private:
  /// Returns the number of fp32 values in `bytes`, and at least `each`. So each of
  /// `each` ranks sends at least one value, and every message takes the link's latency.
  static std::int64_t values_of(double bytes, int each) {
    return std::max<std::int64_t>(std::llround(bytes / sizeof(float)), each);
  }

  const run_plan& plan_;
  bool by_layer_;
  int layers_;
  bool reads_; // whether tensor shards must sum or gather the pass's inputs
  bool meets_, asks_experts_;
  int sums_;
  pass_pieces<float> made_;
};

} // namespace

pass_pieces<float> simulated_stage::pieces(const pass_request& pass) {
  const op what = pass.what.what;
  const auto segments = plan_->segments_of(stage_);
  const int layers = pass.by_layer || segments.size() > 1 ? plan_->sizes.buckets : 1;
  simulated_pass all{*plan_, pass, has_experts_, layers};
  const double last = static_cast<double>(layers - segments.back()) / layers;
  switch (what) {
  case op::forward:
    all.add(true, 0, layers);
    return std::move(all).made(1);
  case op::recompute:
    all.add(true, segments.back(), layers);
    return std::move(all).made(last);
  case op::weight_gradient:
    all.add(false, 0, layers);
    return std::move(all).made(1);
  default:
    for (auto i = segments.size(); i-- > 0;) {
      const int end = i + 1 < segments.size() ? segments[i + 1] : layers;
      if (end < layers)
        all.add(true, segments[i], end, true);
      all.add(false, segments[i], end);
    }
    const double forwards = what == op::backward ? 2 : 1;
    return std::move(all).made(forwards + 1 - last, forwards);
  }
}

} // namespace troupe
