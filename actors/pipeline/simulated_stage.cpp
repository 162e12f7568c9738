// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/simulated_stage.hpp"

#include "plan/stage_experts.hpp"
#include "plan/stage_layers.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

simulated_stage::simulated_stage(const run_plan& plan, position where)
  : plan_(&plan),
    stage_(where.stage),
    has_experts_(!experts_of(plan, where.stage).empty()) {
  // nop
}

summed_gradients simulated_stage::gradients() const {
  summed_gradients result;
  for (int layer = 0; layer < plan_->work.simulated().buckets; ++layer) {
    result.buckets.emplace_back();
    result.completed_by.push_back({layer});
  }
  return result;
}

stage_work stage_work_of(const std::shared_ptr<simulated_stage>& stage) {
  return {.inputs = stage,
          .passes = stage,
          .versions = stage,
          .gradients = stage->gradients()};
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
      reads_(pass.pass_action.op != op::weight_gradient),
      meets_(plan.mesh[axis::tensor] > 1 && reads_),
      asks_experts_(has_experts),
      sums_(meets_        ? plan.work.simulated().sums
            : has_experts ? 2
                          : 1) {
    // nop
  }

  /// Adds pieces for layers [first, last): forwards in increasing order if `up`, else
  /// backwards from the last layer down.
  void add(bool up, int first, int last, bool recomputes = false) {
    const auto& sizes = plan_.work.simulated();
    const auto sum = values_of(sizes.sum, plan_.mesh[axis::tensor]),
               gathered =
                 values_of(sizes.stored_bytes(sizes.sum), plan_.mesh[axis::tensor]),
               rows = values_of(sizes.experts, plan_.mesh[axis::expert]);
    const int first_piece = (up ? first : layers_ - last) * sums_;
    for (int i = first_piece; i < first_piece + (last - first) * sums_; ++i) {
      const int layer = up ? i / sums_ : layers_ - 1 - i / sums_;
      if (meets_ && plan_.sequence_parallel && i % layers_ == 0)
        // A backward gathers the norm's output again, besides the output's gradient.
        pieces_.push_back(
          {.layer = layer,
           .share = 0,
           .collective = {kind::gather, nullptr, up ? gathered : 2 * gathered},
           .recomputes = recomputes});
      auto& piece = pieces_.emplace_back();
      piece.share = 1.0 / (layers_ * sums_);
      piece.layer = layer;
      piece.recomputes = recomputes;
      if (meets_ && (i + 1) % layers_ == 0)
        piece.collective = {plan_.sequence_parallel ? kind::scatter : kind::sum,
                            nullptr, sum};
      if (asks_experts_ && i == 0)
        piece.collective = {kind::experts, nullptr, rows};
      if (by_layer_ && !recomputes && (i + 1) % sums_ == 0)
        piece.completes = {layer};
    }
  }

  /// Returns the pieces, with shares of the action's cost. The whole action costs
  /// `total_forwards` forwards. A pass through all layers costs `pass_forwards`; pieces
  /// that recompute cost their part of one forward. An action never ends with a
  /// meeting: a piece without cost follows the last one.
  pass_pieces<float> build(double total_forwards, double pass_forwards = 1) && {
    for (auto& piece : pieces_)
      piece.share *= (piece.recomputes ? 1 : pass_forwards) / total_forwards;
    if (pieces_.back().collective.operation != kind::none)
      pieces_.push_back({.layer = pieces_.back().layer, .share = 0});
    return std::move(pieces_);
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
  pass_pieces<float> pieces_;
};

} // namespace

pass_pieces<float> simulated_stage::pieces(const pass_request& pass) {
  const op operation = pass.pass_action.op;
  const auto segments = segments_of(*plan_, stage_);
  const int layers =
    pass.by_layer || segments.size() > 1 ? plan_->work.simulated().buckets : 1;
  simulated_pass simulated{*plan_, pass, has_experts_, layers};
  const double last = static_cast<double>(layers - segments.back()) / layers;
  switch (operation) {
  case op::forward:
    simulated.add(true, 0, layers);
    return std::move(simulated).build(1);
  case op::recompute:
    simulated.add(true, segments.back(), layers);
    return std::move(simulated).build(last);
  case op::weight_gradient:
    simulated.add(false, 0, layers);
    return std::move(simulated).build(1);
  default:
    for (auto i = segments.size(); i-- > 0;) {
      const int end = i + 1 < segments.size() ? segments[i + 1] : layers;
      if (end < layers)
        simulated.add(true, segments[i], end, true);
      simulated.add(false, segments[i], end);
    }
    const double forwards = operation == op::backward ? 2 : 1;
    return std::move(simulated).build(forwards + 1 - last, forwards);
  }
}

} // namespace troupe
