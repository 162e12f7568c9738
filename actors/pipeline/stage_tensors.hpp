// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/pipeline/stage_versions.hpp"
#include "actors/pipeline/stage_work.hpp"
#include "actors/rank/rank_memory.hpp"
#include "kernels/pool.hpp"
#include "models/slice.hpp"
#include "models/slices_by_length.hpp"
#include "plan/layout.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_rules.hpp"
#include "schedules/stage_version_ledger.hpp"

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Makes the pool of buffers between a stage and the next, for activations up and
/// gradients down.
/// \param where the lower of the two stages
/// \param memory accounts of the rank; outlives the pool
/// \pre plan.work
std::shared_ptr<pool> boundary_pool(const run_plan& plan, position where,
                                    rank_memory& memory);

/// The connection of a stage with one neighbour. The pool `messages` is null at the
/// ends of a pipeline.
struct boundary {
  std::shared_ptr<pool> messages = {};
  /// True if a pass sends the message to this neighbour at the pass's launch, false if
  /// at the pass's end.
  bool left_at_launch = false;
};

/// The tensors of one direction and tensor shard of a stage: parameters by version, the
/// sum of the gradients, and the buffers held for each microbatch. The constructor
/// allocates all tensor memory, except the pools of the boundaries.
class stage_tensors : public stage_inputs, public stage_passes {
public:
  /// \param memory accounts of the rank; outlives this object
  /// \param compute_stream stream of the rank's device, on which passes run; outlives
  /// this object
  /// \param below,above connections with the previous and the next stage
  /// \pre plan.work
  stage_tensors(const run_plan& plan, position where, rank_memory& memory,
                stream& compute_stream, boundary below, boundary above);

  void put_input(int microbatch, buffer input) override;
  void put_labels(int microbatch, buffer labels) override;
  void put_gradient(int microbatch, buffer from_above) override;
  bool has_inputs(int microbatch) const override;
  pass_pieces<float> pieces(const pass_request& pass) override;
  bool leaves_at_launch(op operation) const override;
  buffer take_message(op operation, int microbatch) override;
  std::shared_ptr<gpu_completion> reader_before(op operation, int microbatch) override;
  std::optional<loss_sum> end_forward(int microbatch) override;
  void end_backward(op operation, int microbatch) override;

  weight_versions& versions() { return versions_; }
  const summed_gradients& gradients() const { return gradients_; }
  meeting_memory memory_of_meetings();

private:
  stage_tensors(const run_plan& plan, position where, const stage_pools& sizes,
                rank_memory& memory, stream& compute_stream, boundary below,
                boundary above);

  /// The buffers and losses held for one microbatch.
  struct held {
    buffer input, labels, output, stash, inputs, from_above, input_gradient, kept;
    loss_sum loss, recomputed_loss; // of the forward, and of its recomputation
  };

  /// The buffer into which a pass writes its output for a neighbour.
  static buffer& message_of(held& h, op operation) {
    return operation == op::forward ? h.output : h.input_gradient;
  }

  bool is_first() const { return layers_.whole().is_first(); }
  bool is_last() const { return layers_.whole().is_last(); }
  pass<float> make_pass(const held& h, const pass_request& request);
  pass_pieces<float> forward(const pass_request& request);
  pass_pieces<float> recompute(const pass_request& request);
  pass_pieces<float> backward(const pass_request& request);
  buffer output_buffer(pool& messages, buffer held::*given_back);
  float* gather_address(int layer, int version);
  void add_share(int layer, bool first);

  slices_by_length<float> layers_;
  std::vector<layer_bucket> held_buckets_;
  std::vector<std::size_t>
    layer_buckets_; // by layer: the layer's own bucket, without experts
  stream& stream_;
  boundary below_, above_;
  pool stashes_, inputs_, kept_, to_shards_, sums_under_way_, gathers_under_way_;
  tensor_memory scratch_;
  bool recomputes_;
  tensor_memory recomputed_output_; // output of recomputations, never read
  bucket_shares shares_;
  bucket_extent has_parameters_, has_gradients_;
  // Arrays for two layers, indexed by the layer's parity.
  tensor_memory gathered_[2], whole_gradients_[2];
  stage_versions versions_;
  bucket_pools sums_; // one buffer each
  summed_gradients gradients_;
  std::unordered_map<int, held> held_;
  std::optional<int>
    ending_microbatch_; // the microbatch whose buffers a running backward frees
};

/// The work of a stage with tensors.
stage_work stage_work_of(const std::shared_ptr<stage_tensors>& tensors);

} // namespace troupe
