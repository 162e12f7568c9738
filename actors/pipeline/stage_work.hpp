// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/expert_meeting.hpp"
#include "actors/meetings/layer_meeting.hpp"
#include "kernels/cross_entropy.hpp"
#include "models/batching.hpp"
#include "models/slice.hpp"
#include "schedules/stage_version_ledger.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace troupe {

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

/// Buffers for a copy of a version, and the work that writes the copy. Both are empty
/// where nothing is computed. The version must stay stored until the work has ended.
struct parameter_copy {
  std::vector<buffer> to;
  std::function<void()> run;
};

/// The buffers of an update: the update reads the newest version and writes the next
/// version.
struct update_buffers {
  /// Buffers by bucket; `to` may be the same buffers as `from`.
  std::vector<buffer> from, to;
  /// Copies the version in `from` to the buffers of older versions. The caller runs the
  /// function once, on the stage's device, before the update writes to `to`. Empty if
  /// the update need not save a version.
  std::function<void()> save_previous = {};
};

/// The interface between a stage and its data: tensors (stage_tensors), or sizes and
/// costs alone (simulated_stage). One stage owns the object, and calls every function
/// from one thread at a time.
class stage_work {
public:
  virtual ~stage_work() = default;

  /// Floating-point operations of the forward of a microbatch of this shape, without
  /// experts; 0 in a simulation.
  virtual double operations(const microbatch_shape& batch_shape) const = 0;

  // Each function stores an input of a microbatch that the stage has received.
  virtual void put_input(int microbatch, buffer input) = 0;
  virtual void put_labels(int microbatch, buffer labels) = 0;
  virtual void put_gradient(int microbatch, buffer from_above) = 0;

  /// True if all inputs of a microbatch's forward are stored.
  /// \pre an input of the microbatch is stored
  virtual bool has_inputs(int microbatch) const = 0;

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

  /// To be called after F: frees the buffers that only F needs.
  virtual void end_forward(int microbatch) = 0;

  /// The loss of a microbatch, after the last stage's F and until the end of its B or
  /// W. Absent in other stages, and where nothing is computed.
  virtual std::optional<loss_sum> loss_of(int microbatch) const = 0;

  /// To be called after B, I or W. B and W free all buffers of the microbatch; I frees
  /// the labels.
  virtual void end_backward(op operation, int microbatch) = 0;

  /// Indexes of the stage's buckets whose gradients are complete after `layers`: the
  /// buckets of the layers, and of the layers' experts on this rank.
  /// \param layers indexes in the stage
  virtual std::vector<int> buckets_of(const std::vector<int>& layers) const = 0;

  /// The buffers of a version's parameters, by bucket; no buffers in a simulation.
  /// \pre the version is the newest, or all are fp32
  virtual std::vector<buffer> parameters(int version) const = 0;

  /// The buffers of the summed gradients, by bucket; empty buffers in a simulation.
  virtual std::vector<buffer> gradients() const = 0;

  /// The buckets of any stored version, in fp32 or with bf16 matrices; valid until the
  /// next update.
  /// \pre no update is under way
  virtual std::vector<weight_bucket<float>> stored(int version) const = 0;

  /// Returns the buffers for version `update.from` + 1, and starts no work.
  /// \throws std::logic_error if no buffer is free: keep_only() has to come first
  virtual update_buffers prepare_update(const update_facts& update) = 0;

  /// Drops the versions that the version ledger no longer contains.
  virtual void keep_only(const stage_version_ledger& ledger) = 0;

  /// Returns the buffers for a copy of a version, and the work that writes the copy,
  /// which the caller runs.
  /// \pre the version is the newest, or all are fp32
  /// \throws std::logic_error if no buffer for copies is free
  virtual parameter_copy copy(int version) = 0;

  // The memory that the stage's meetings read and write, valid as long as this object;
  // empty or null where nothing is computed.
  virtual layer_memory memory_of_layers() = 0;
  virtual expert_meeting::lender lender() = 0;
  virtual pool* copies_to_shards() = 0;
};

} // namespace troupe
