// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/collective_meeting.hpp"
#include "kernels/pool.hpp"
#include "messaging/replica_exchange.hpp"

#include <array>
#include <functional>
#include <memory>
#include <vector>

namespace troupe {

/// The memory for whole layers of which a stage holds only a share, for two layers at a
/// time. A layer is an index in the stage. Functions are empty and pools null where
/// nothing is computed.
struct layer_memory {
  /// Returns the array in which a layer's parameters are gathered. The array already
  /// contains the stage's share of the version.
  std::function<float*(int layer, int version)> to_gather;
  /// Returns the array of a layer's gradients for one microbatch.
  std::function<float*(int layer)> gradients;
  /// Adds the stage's share of a layer's gradients for one microbatch to the update's
  /// sum of the share; sets the sum if `first`.
  std::function<void(int layer, bool first)> add_share;
  pool* gathers = nullptr; ///< Buffers of messages with parameters.
  pool* sums = nullptr;    ///< Buffers of messages with gradients.
};

/// The meeting of data replicas that hold only a share of gradients (ZeRO 2), or of
/// gradients and parameters (ZeRO 3; Rajbhandari et al., "ZeRO", 2020, sections 5.2,
/// 5.3). With ZeRO 3 the replicas gather the next layer's parameters while a pass
/// computes the current layer. The replicas sum a layer's gradients as soon as the
/// gradients exist. Memory holds two whole layers: one of even and one of odd index. A
/// step is over when no collective of the step's kind uses the layer's memory. Pieces
/// of an action wait for steps (weave.hpp). Indices of steps: gather_of(layer),
/// sum_of(layer), with the layer's index in the stage.
class layer_meeting : public collective_meeting {
public:
  static int gather_of(int layer) { return 2 * layer; }
  static int sum_of(int layer) { return 2 * layer + 1; }

  /// True if messages with this number of a collective have gradients.
  static bool sums_gradients(int instance) {
    return step_of_instance(instance) == exchange_step::sum;
  }

  /// \param plan outlives the meeting
  /// \param memory pools, and objects of the functions, outlive the meeting
  layer_meeting(const run_plan& plan, position where, layer_memory memory);

  /// To be called when an action begins.
  /// \param version of the weights that the action reads
  /// \param begins_sum true if the action's gradients are the first of an update
  void expect(int version, bool begins_sum) {
    version_ = version;
    begins_sum_ = begins_sum;
  }

  meeting_messages begin(int index) override;

  /// True if no collective of the step's kind, gather or sum, uses the memory for the
  /// layer. A collective of another layer that uses the same memory counts too.
  bool is_done(int index) const override;

private:
  /// The use of the memory for one of the two layers.
  struct layer_use {
    int layer = -1;
    int instance = -1; // -1: no collective under way
  };

  static exchange_step step_of(int index) {
    return index % 2 == 0 ? exchange_step::gather : exchange_step::sum;
  }
  /// Gathers have odd instances, and sums even ones, so the instance of a message gives
  /// the step.
  static exchange_step step_of_instance(int instance) {
    return instance % 2 == 0 ? exchange_step::sum : exchange_step::gather;
  }
  using layer_uses = std::array<layer_use, 2>;
  layer_uses& uses_of(exchange_step step) {
    return step == exchange_step::gather ? gathering_ : summing_;
  }
  position member_at(int instance, int member) const override;
  traffic traffic_of(int instance) const override;
  void ended(int instance) override;

  layer_memory memory_;
  std::vector<std::int64_t> values_;           // of each layer's bucket
  std::vector<std::unique_ptr<codec>> coders_; // of each layer's gradients
  int started_count_ = 0;
  int version_ = 0;
  bool begins_sum_ = false;
  layer_uses gathering_, summing_;
};

} // namespace troupe
