#pragma once

#include "actors/mail/props.hpp"
#include "actors/pipeline/stage_core.hpp"
#include "kernels/device.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>

namespace troupe {

struct stage_state {
  std::string name = "stage";
  props shared;
  device* computer = nullptr; ///< Of its rank.
  std::unique_ptr<stage_core> core;
  stage_peers peers;
  stage_core::tell_bucket tell_optimizer; ///< Also from a device's callbacks.
};

/// One replica of one stage: holds its parameters and activations, computes when its
/// scheduler says so, and sends what comes out to its neighbours.
stage_actor::behavior_type stage(stage_actor::stateful_pointer<stage_state> self,
                                 props shared, device* computer, position where,
                                 std::shared_ptr<stage_tensors> tensors,
                                 std::shared_ptr<expert_exchange> experts);

} // namespace troupe
