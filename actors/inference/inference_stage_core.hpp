// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_work.hpp"
#include "kernels/device.hpp"
#include "messaging/mail/control.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// A stage of an inference, without actor code. One actor thread at a time calls the
/// stage. A forward starts when a portion has arrived, the stage's device is free, and
/// the upper neighbour has capacity for the result.
class inference_stage_core {
public:
  /// \param stages number of stages of the pipeline
  inference_stage_core(int stage, int stages, std::shared_ptr<inference_work> work);

  const std::string& name() const { return name_; }

  /// Keeps a portion of the lower neighbour until a forward can start.
  void receive(portion in) { waiting_.push_back(std::move(in)); }

  /// Notes that the upper neighbour has consumed a portion.
  void free_above() { ++capacity_above_; }

  /// Returns the forward that starts now, as work for the device; absent if none can
  /// start.
  std::optional<work> begin();

  /// Ends the current forward and releases the input, so that the lower neighbour has
  /// capacity again.
  /// \returns the portion for the upper neighbour
  /// \pre a forward has started, and has ended on the device
  portion end();

  /// Describes the device, the portion or the capacity that the stage waits for.
  mail::waiting_for explain() const;

private:
  /// The input and the output of a forward. Outlives the stage core while the device
  /// runs the forward, as the device's work owns this object too.
  struct forward_under_way {
    portion in, out;
  };

  int stage_, stages_;
  std::string name_;
  std::shared_ptr<inference_work> work_;
  std::deque<portion> waiting_;
  int capacity_above_ = portions_between;
  std::shared_ptr<forward_under_way> now_; // null: the device is free
};

/// The name of an inference's stage, or of the client if `stage` is -1 or `stages`.
std::string name_of_inference(int stage, int stages);

} // namespace troupe
