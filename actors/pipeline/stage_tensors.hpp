#pragma once

#include "actors/pipeline/stage_pools.hpp"
#include "actors/rank/rank_memory.hpp"
#include "kernels/pool.hpp"
#include "models/slice.hpp"
#include "schedules/stage_ledger.hpp"

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace troupe {

/// The pool between a stage and the next: activations go up, gradients come back.
std::shared_ptr<pool> boundary_pool(const run_plan& plan, position where,
                                    rank_memory& memory);

/// The tensors of one replica of a stage: its parameters by version, the sum of its
/// gradients, and what it keeps of each microbatch. All memory is taken when it is
/// made.
class stage_tensors {
public:
  /// \param below,above boundary pools to the previous and the next stage; null at the
  /// ends
  stage_tensors(const run_plan& plan, position where, rank_memory& memory,
                team& threads, std::shared_ptr<pool> below,
                std::shared_ptr<pool> above);

  bool is_first() const { return layers_.is_first(); }
  bool is_last() const { return layers_.is_last(); }
  double operations(std::int64_t samples) const;

  // Inputs, as they come.
  void put_input(int microbatch, buffer input);
  void put_labels(int microbatch, buffer labels);
  void put_gradient(int microbatch, buffer from_above);

  /// Whether a forward has all its inputs.
  bool has_inputs(int microbatch) const;

  /// The arithmetic of a forward on a version; to be run once, before end_forward.
  /// \param by_layer whether it must wait for each layer
  pass_pieces<float> forward(int microbatch, sample_range samples, int version,
                             bool by_layer);

  /// Its result: the activation to send, empty from the last stage.
  buffer end_forward(int microbatch);

  /// The loss of the last stage's forward of this microbatch.
  loss_sum loss_of(int microbatch) const;

  /// The arithmetic of B, I or W. \param begins_sum,ends_sum whether its gradients are
  /// the first and the last of an update
  /// \param by_layer whether somebody waits for each layer
  pass_pieces<float> backward(op what, int microbatch, sample_range samples,
                              int version, bool begins_sum, bool ends_sum,
                              bool by_layer);

  /// Where copies travel to other tensor shards, and to data replicas.
  pool& to_shards() { return to_shards_; }
  pool& to_replicas(exchange_step step) {
    return step == exchange_step::sum ? sums_under_way_ : gathers_under_way_;
  }

  // Where data replicas share out what a stage holds, there is room for two whole
  // layers.

  /// Where a layer's parameters are gathered; this stage's share of a version is there.
  float* place_to_gather(int layer, int version);

  /// Where a layer's gradients of one microbatch are.
  float* whole_gradient(int layer);

  /// Adds the share of those, or sets it. \param first of an update
  void add_share(int layer, bool first);

  /// The gradient to send after B or I, empty from the first stage; after B or W the
  /// microbatch is forgotten.
  buffer end_backward(op what, int microbatch);

  /// The buckets of a version, and of the summed gradients.
  std::vector<buffer> parameters(int version) const { return versions_.at(version); }
  std::vector<buffer> gradients() const { return gradients_; }

  /// Makes room for version `from` + 1: the same buckets if it is made in place.
  std::vector<buffer> make_room(const update_facts& update);

  /// Drops versions that the books no longer know.
  void keep_only(const stage_ledger& books);

  /// A copy of a version, for an evaluation.
  std::vector<buffer> copy(int version);

private:
  stage_tensors(const run_plan& plan, position where, const stage_pools& sizes,
                rank_memory& memory, team& threads, std::shared_ptr<pool> below,
                std::shared_ptr<pool> above);

  /// What is kept of one microbatch.
  struct held {
    buffer input, labels, output, stash, from_above, input_gradient, kept;
    loss_sum loss;
  };

  pass<float> pass_on(const held& h, sample_range samples, int version);
  std::int64_t values_of(std::size_t bucket) const;
  void fill_initial(const run_plan& plan);

  slice<float> layers_;
  std::vector<layer_bucket> held_buckets_;
  std::vector<std::size_t> own_; // the bucket of each layer, not of its experts
  team& threads_;
  std::shared_ptr<pool> below_, above_;
  pool stashes_, kept_, to_shards_, sums_under_way_, gathers_under_way_;
  tensor_memory scratch_;
  bucket_share share_;
  bucket_extent has_parameters_, has_gradients_;
  tensor_memory gathered_[2], whole_gradients_[2]; // of layers by turns
  // A pool a bucket:
  std::vector<std::unique_ptr<pool>> buckets_; // its versions
  std::vector<std::unique_ptr<pool>> sums_;    // one
  std::vector<std::unique_ptr<pool>> snapshots_;
  std::map<int, std::vector<buffer>> versions_;
  std::vector<buffer> gradients_;
  std::unordered_map<int, held> held_;
};

} // namespace troupe
