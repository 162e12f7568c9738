// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/expert_meeting.hpp"
#include "actors/meetings/layer_meeting.hpp"
#include "kernels/cross_entropy.hpp"
#include "models/batching.hpp"
#include "models/slice.hpp"
#include "schedules/stage_ledger.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace troupe {

/// A forward, backward, input or weight gradient of one microbatch.
struct pass_request {
  action what;
  sample_range samples;
  int version;             ///< Of the weights that it reads.
  bool begins_sum;         ///< Its gradients are the first of an update,
  bool ends_sum;           ///< or the last.
  bool by_layer;           ///< Somebody waits for each layer.
  std::int64_t length = 0; ///< Of sequences, as the plan's batches say it.
};

/// A copy of a version, and the work that makes it; none where nothing is computed.
struct parameter_copy {
  std::vector<buffer> to;
  std::function<void()> run;
};

/// Where an update finds the newest version, and where it writes the next.
struct update_room {
  std::vector<buffer> from, to; ///< May be the same.
  /// Has to run before anything is written, on the stage's device, if it is not empty.
  std::function<void()> put_aside = {};
};

/// What a stage works on: tensors (stage_tensors), or sizes and costs alone
/// (simulated_stage). One stage owns it, and calls it from one thread at a time.
class stage_work {
public:
  virtual ~stage_work() = default;

  /// Floating-point operations of a forward; 0 where costs do not come from them.
  virtual double operations(const microbatch_shape& of) const = 0;

  // Inputs of a microbatch, as they come.
  virtual void put_input(int microbatch, buffer input) = 0;
  virtual void put_labels(int microbatch, buffer labels) = 0;
  virtual void put_gradient(int microbatch, buffer from_above) = 0;

  /// Whether a forward has all its inputs.
  virtual bool has_inputs(int microbatch) const = 0;

  /// The pieces of a pass; each runs once, in order.
  virtual pass_pieces<float> pieces(const pass_request& pass) = 0;

  /// Whether what a pass makes for a neighbour may leave when the pass has been
  /// launched.
  virtual bool leaves_at_launch(op what) const = 0;

  /// Of a pass that has been launched, or has ended: the activation or gradient to
  /// send; empty if it has been taken, or there is none.
  virtual buffer take_message(op what, int microbatch) = 0;

  /// Before it is launched: who may still read what was in the message's buffer before.
  /// Null: nobody.
  virtual std::shared_ptr<launched_end> reader_before(op what, int microbatch) = 0;

  /// After F.
  virtual void end_forward(int microbatch) = 0;

  /// After the last stage's F. Absent of other stages, and where nothing is computed.
  virtual std::optional<loss_sum> loss_of(int microbatch) const = 0;

  /// After B, I or W. B and W forget the microbatch.
  virtual void end_backward(op what, int microbatch) = 0;

  /// The buckets of the stage whose gradients are complete with these layers: their
  /// own, and those of their experts here.
  virtual std::vector<int> buckets_of(const std::vector<int>& layers) const = 0;

  /// The buckets of the newest version, and of the summed gradients.
  virtual std::vector<buffer> parameters(int version) const = 0;
  virtual std::vector<buffer> gradients() const = 0;

  /// The buckets of any version. \pre no update is under way
  virtual std::vector<weight_bucket<float>> stored(int version) const = 0;

  /// Makes room for version `from` + 1.
  virtual update_room make_room(const update_facts& update) = 0;

  /// Drops versions that the books no longer know.
  virtual void keep_only(const stage_ledger& books) = 0;

  /// A copy of a version, for an evaluation, to be made on the stage's device.
  virtual parameter_copy copy(int version) = 0;

  // What the stage's meetings read and write; empty where nothing is computed.
  virtual layer_memory memory_of_layers() = 0;
  virtual expert_meeting::lender lender() = 0;
  virtual pool* copies_to_shards() = 0;
};

} // namespace troupe
