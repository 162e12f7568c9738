// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/gradient_buckets.hpp"
#include "models/optimizer.hpp"
#include "models/plain_plan.hpp"
#include "models/slices_by_length.hpp"

#include <map>
#include <vector>

namespace troupe {

/// A stage of the plain loop: a slice, the slice's weight versions, and sums of
/// gradients.
class plain_stage {
public:
  /// \param stage index in the plan
  /// \param plan outlives this object
  /// \param account outlives this object
  plain_stage(const plain_plan& plan, std::size_t stage, memory_account& account);

  /// The slice for sequences of `length` tokens; 0: the network's full length. Valid as
  /// long as this object.
  const slice<float>& layers(std::int64_t length = 0) const {
    return layers_.at_length(length);
  }
  float* output() const { return output_.data(); }
  float* input_gradient() const { return input_gradient_.data(); }
  /// Number of the newest version; 0: the initial weights.
  int newest() const { return versions_.rbegin()->first; }
  std::vector<float*> parameters() { return writable(versions_.rbegin()->second); }

  /// The gradients of an update: one array for each layer.
  /// \pre add_replicas() has been called for the update
  std::vector<float*> sum() { return writable(sums_[0]); }

  /// A pass of this stage on a version of the stage's weights; the caller adds samples,
  /// inputs and stream. The stage owns the arrays. All passes use the same output,
  /// stash and scratch, so a stage can run only one pass at a time.
  /// \pre the version has been made, and update() has not dropped the version
  /// \param first_of_sum true: gradients overwrite the replica's sums instead of adding
  pass<float> pass_on(int version, int replica, bool first_of_sum) const;

  /// Sums the gradients of one microbatch of each replica by direction, and adds each
  /// sum to the direction's total. Does nothing unless the plan has `sum_microbatch`.
  /// \param first_of_sum true: sets the totals instead of adding
  void add_microbatch(bool first_of_sum);

  /// Saves the sums and totals of a minibatch; the next sums go to new arrays.
  void save_sums();

  /// Replaces the sums and totals by the saved sums and totals.
  /// \pre save_sums() has been called since the last restore_sums()
  void restore_sums();

  /// Makes sum(): adds all replicas' sums into the first replica's sum. With
  /// `sum_microbatch`, the first replica's sum becomes the sum of the directions'
  /// totals instead.
  void add_replicas();

  /// Returns sums of squares of the update's gradients, in the order in which a norm
  /// adds the sums.
  /// \pre add_replicas() has been called for the update
  std::vector<double> squares(stream& compute_stream) const;

  /// Makes the next version from sum(), and drops versions before `oldest_needed`.
  /// Waits for the stream. The new version stays, even if `oldest_needed` is later.
  void update(std::int64_t samples, double factor, int oldest_needed,
              stream& compute_stream);

  /// Appends copies of the newest version and of the update's gradients.
  void collect(std::vector<std::vector<float>>& parameters,
               std::vector<std::vector<float>>& gradients) const;

private:
  using buckets = std::vector<tensor_memory>;

  buckets new_buckets() const;

  const plain_plan& plan_;
  slices_by_length<float> layers_;
  memory_account& account_;
  optimizer optimizer_;
  gradient_buckets gradients_;
  std::map<int, buckets> versions_;
  std::vector<buckets> sums_;   // a replica each
  std::vector<buckets> totals_; // a direction each, of microbatches summed before
  std::vector<buckets> saved_sums_, saved_totals_;
  tensor_memory output_, input_gradient_, stash_, scratch_;
};

} // namespace troupe
