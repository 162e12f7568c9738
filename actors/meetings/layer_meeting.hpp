// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "actors/plan/run_plan.hpp"
#include "kernels/pool.hpp"
#include "messaging/collectives_under_way.hpp"

#include <array>
#include <functional>
#include <vector>

namespace troupe {

/// Where whole layers stand that a stage holds only its share of: of two at once. Empty
/// functions and null pools where nothing is computed.
struct layer_memory {
  /// The place where a layer is gathered; the stage's share of a version stands in it.
  std::function<float*(int layer, int version)> to_gather;
  /// The gradients of one microbatch for a layer.
  std::function<float*(int layer)> gradients;
  /// Adds the stage's share of those to its sum, or sets the sum to it.
  std::function<void(int layer, bool first)> add_share;
  pool* gathers = nullptr; ///< Where copies of parameters travel,
  pool* sums = nullptr;    ///< and those of gradients.
};

/// Data replicas that hold only a share of gradients (ZeRO 2), or of parameters too
/// (ZeRO 3; Rajbhandari et al., "ZeRO", 2020, sections 5.2, 5.3). They gather a layer's
/// parameters just before its use, and sum its gradients as soon as they have them.
/// Layers take two places in turn; what weave.hpp puts between the pieces of an action
/// waits until a place is free. Occasions: gather_of(layer), sum_of(layer).
class layer_meeting : public meeting {
public:
  static int gather_of(int layer) { return 2 * layer; }
  static int sum_of(int layer) { return 2 * layer + 1; }

  /// \param plan outlives it
  layer_meeting(const run_plan& plan, position where, layer_memory memory);

  /// An action begins that reads this version. \param begins_sum whether its gradients
  /// are the first of an update
  void expect(int version, bool begins_sum) {
    version_ = version;
    begins_sum_ = begins_sum;
  }

  letters begin(int occasion) override;
  letters take(mail::letter what) override;

  /// Whether the layer's place is not used for such a collective.
  bool over(int occasion) const override;

  std::optional<absence> waits_for() const override;
  void yield_sums(const sum_asker& ask) override;
  void exchange_by(const group_finder& groups, const sum_asker& ask) override;

private:
  /// What one of the two places is used for.
  struct place {
    int layer = -1;
    int instance = -1; // -1: nothing is under way
  };

  static exchange_step step_of(int occasion) {
    return occasion % 2 == 0 ? exchange_step::gather : exchange_step::sum;
  }
  /// Gathers have odd instances, so that a message says what it is for.
  static exchange_step step_of_instance(int instance) {
    return instance % 2 == 0 ? exchange_step::sum : exchange_step::gather;
  }
  using places = std::array<place, 2>;
  places& of(exchange_step step) {
    return step == exchange_step::gather ? gathering_ : summing_;
  }
  letters settled(exchange_step step, std::vector<collective_message> out);

  const run_plan* plan_;
  position where_;
  layer_memory memory_;
  std::vector<std::int64_t> values_; // of each layer's bucket
  collectives_under_way under_way_;
  int begun_ = 0;
  int version_ = 0;
  bool begins_sum_ = false;
  places gathering_, summing_;
};

} // namespace troupe
