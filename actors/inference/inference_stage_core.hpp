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

/// A stage of an inference without its mailbox: it begins a forward when a portion is
/// there, its device is free, and its neighbour above has room for what comes out.
class inference_stage_core {
public:
  /// \param stages of the pipeline
  inference_stage_core(int stage, int stages, std::shared_ptr<inference_work> work);

  const std::string& name() const { return name_; }

  void take(portion in) { waiting_.push_back(std::move(in)); }

  /// The neighbour above has used up a portion.
  void free_above() { ++room_above_; }

  /// The forward that begins now, for its device; absent if none can.
  std::optional<work> begin();

  /// The forward has ended. Its input is given up, so that the neighbour below has
  /// room. \returns what goes up \pre one has begun
  portion end();

  mail::waiting_for explain() const;

private:
  /// Outlives this where its device is at work.
  struct forward_under_way {
    portion in, out;
  };

  int stage_, stages_;
  std::string name_;
  std::shared_ptr<inference_work> work_;
  std::deque<portion> waiting_;
  int room_above_ = portions_between;
  std::shared_ptr<forward_under_way> now_; // null: the device is free
};

/// How the stage of an inference, or if it is none their client, is called.
std::string name_of_inference(int stage, int stages);

} // namespace troupe
