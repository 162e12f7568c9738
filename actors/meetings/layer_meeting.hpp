#pragma once

#include "actors/pipeline/stage_tensors.hpp"
#include "actors/plan/run_plan.hpp"
#include "messaging/collectives_under_way.hpp"

#include <array>
#include <optional>
#include <vector>

namespace troupe {

/// What a stage does layer by layer because it holds no more than its share of
/// gradients (ZeRO 2) or of parameters too (ZeRO 3): it sums the gradients of each
/// layer among data replicas as soon as it has them, and gathers the parameters of a
/// layer just before their use, of the next one while it computes on them. Both take
/// two layers' memory at once, so it may have to wait (Rajbhandari et al., "ZeRO",
/// 2020, sections 5.2, 5.3).
///
///   layer        3          2          1          0      of a backward
///   gather       3    2          1          0
///   compute      ====       ====       ====       ====
///   sum                3          2          1          0
class layer_sharing {
public:
  /// \param tensors null where nothing is computed
  layer_sharing(const run_plan& plan, position where, stage_tensors* tensors);

  /// Whether an op goes layer by layer.
  bool concerns(op what) const { return gathers(what) || sums(what); }
  bool sums(op what) const {
    return what == op::backward || what == op::weight_gradient;
  }

  /// A message, and what it is for.
  struct outgoing {
    exchange_step what;
    collective_message message;
  };
  using messages = std::vector<outgoing>;

  /// An action begins that passes through these layers, in this order.
  /// \param begins_sum whether its gradients are the first of an update
  messages begin(op what, int version, bool begins_sum, std::vector<int> layers);

  /// Whether it can compute on a layer; -1: whether all is over.
  bool ready(int layer) const;

  messages enter(int layer); ///< It computes on a layer. \pre ready(layer)
  messages leave(int layer); ///< It has. \pre it entered it last

  messages take(collective_message message);

  /// The data replica without whose message it cannot go on; absent if it need not.
  std::optional<int> waits_for() const {
    const auto missing = under_way_.waits_for();
    return missing ? std::optional{missing->from} : std::nullopt;
  }

private:
  /// What one of the two places for a layer is used for.
  struct place {
    int layer = -1;
    int instance = -1; // -1: nothing is under way
  };

  bool gathers(op what) const {
    return shares_parameters_ && what != op::weight_gradient;
  }
  messages start(exchange_step step, int layer);
  messages settled(exchange_step step, std::vector<collective_message> out);
  static std::size_t place_of(int layer) { return static_cast<std::size_t>(layer % 2); }

  const run_plan* plan_;
  position where_;
  stage_tensors* tensors_;
  bool shares_parameters_;
  std::vector<std::int64_t> values_; // of each layer's bucket
  collectives_under_way under_way_;
  int begun_ = 0;
  op what_ = op::forward; // the action under way
  int version_ = 0;
  bool begins_sum_ = false;
  std::vector<int> order_;
  std::array<place, 2> gathering_, summing_;
};

} // namespace troupe
