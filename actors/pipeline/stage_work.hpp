// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/expert_meeting.hpp"
#include "actors/meetings/layer_meeting.hpp"
#include "actors/pipeline/weight_versions.hpp"
#include "kernels/cross_entropy.hpp"
#include "models/batching.hpp"
#include "models/slice.hpp"

#include <memory>
#include <optional>
#include <vector>

// The work of a stage: inputs, passes, weight versions and sums of gradients. Tensors
// do the work (stage_tensors), or sizes and costs alone (simulated_stage). One stage
// owns the objects, and calls every function from one thread at a time.

namespace troupe {

/// The inputs of a stage's passes, held for each microbatch.
class stage_inputs {
public:
  virtual ~stage_inputs() = default;

  // Each function stores an input of a microbatch that the stage has received.
  virtual void put_input(int microbatch, buffer input) = 0;
  virtual void put_labels(int microbatch, buffer labels) = 0;
  virtual void put_gradient(int microbatch, buffer from_above) = 0;

  /// True if all inputs of a microbatch's forward are stored.
  /// \pre an input of the microbatch is stored
  virtual bool has_inputs(int microbatch) const = 0;
};

/// A forward, recomputation, backward, input or weight gradient of one microbatch.
struct pass_request {
  action pass_action;
  sample_range samples;    ///< The microbatch's samples in the data.
  int version;             ///< Version of the weights that the pass reads.
  bool begins_sum;         ///< The pass's gradients are the first of an update.
  bool ends_sum;           ///< The pass's gradients are the last of an update or run.
  bool by_layer;           ///< A meeting or the optimizer waits for each layer.
  std::int64_t length = 0; ///< Tokens of a sequence; 0: the network's length.
};

/// The passes of a stage, and the buffers that a pass writes or frees.
class stage_passes {
public:
  virtual ~stage_passes() = default;

  /// Returns the pieces of a pass. Each piece runs once, in order, on the stage's
  /// device. Calls must come in the order in which passes run on the device: a pass may
  /// reuse the buffers of an earlier pass.
  /// \pre the version is stored
  /// \pre for F: has_inputs(); for other passes: F's pieces() was called before
  /// \pre the gradient from above is stored, if the pass reads that gradient
  /// \throws std::logic_error if a pool has no free buffer
  virtual pass_pieces<float> pieces(const pass_request& pass) = 0;

  /// True if a pass's output for a neighbour may be sent when the pass is launched, and
  /// not only at the pass's end.
  virtual bool leaves_at_launch(op operation) const = 0;

  /// Returns the activation or gradient to send, of a pass that has been launched or
  /// has ended. Empty if the buffer was taken before, or the pass sends no message;
  /// also empty in a simulation.
  /// \pre end_backward() has not freed the microbatch's buffers
  virtual buffer take_message(op operation, int microbatch) = 0;

  /// To be called once, after pieces() and before the pass is launched. Returns the GPU
  /// work that may still read the earlier contents of the buffer for the pass's
  /// message; null if no work does.
  virtual std::shared_ptr<gpu_completion> reader_before(op operation,
                                                        int microbatch) = 0;

  /// To be called after F: frees the buffers that only F needs. Returns the
  /// microbatch's loss; absent except in the last stage, and where nothing is computed.
  virtual std::optional<loss_sum> end_forward(int microbatch) = 0;

  /// To be called after B, I or W. B and W free all buffers of the microbatch; I frees
  /// the labels.
  virtual void end_backward(op operation, int microbatch) = 0;
};

/// The gradients that a stage sums for an update. Buffers are empty in a simulation.
struct summed_gradients {
  std::vector<buffer> buckets;
  /// By layer of the stage: indexes of the layer's bucket, and of the buckets of the
  /// layer's experts on this rank.
  std::vector<std::vector<int>> completed_by = {};

  /// Indexes of the buckets whose gradients are complete after `layers`.
  std::vector<int> buckets_of(const std::vector<int>& layers) const {
    std::vector<int> result;
    for (const int layer : layers)
      for (const int bucket : completed_by[static_cast<std::size_t>(layer)])
        result.push_back(bucket);
    return result;
  }
};

/// The memory that the stage's meetings read and write, valid as long as the stage's
/// work; empty or null where nothing is computed.
struct meeting_memory {
  layer_memory layers = {};
  expert_meeting::lender lend = {};
  pool* to_shards = nullptr; ///< Buffers of messages to tensor shards.
};

/// The objects that do a stage's work. All pointers are null for a stage whose rank is
/// in another process.
struct stage_work {
  std::shared_ptr<stage_inputs> inputs = {};
  std::shared_ptr<stage_passes> passes = {};
  std::shared_ptr<weight_versions> versions = {};
  summed_gradients gradients = {};
  meeting_memory memory = {};
};

} // namespace troupe
