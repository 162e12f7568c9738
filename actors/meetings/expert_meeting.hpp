// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/expert_sizes.hpp"
#include "actors/meetings/meeting.hpp"
#include "kernels/pool.hpp"
#include "messaging/mail/reports.hpp"
#include "models/layer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace troupe {

/// The meeting of a stage with the experts of the stage's layers. At each step the
/// stage sends rows to all experts of a layer, and the experts' results replace the
/// rows. The exchange is an all_to_all of unequal parts between the ranks of a group;
/// each part goes directly to one expert. The index of a step is the index of a layer
/// in the action under way.
class expert_meeting : public meeting {
public:
  /// Lends the parameters of a version and, for backwards, the gradients of a bucket.
  using lender = std::function<std::pair<weight_place<float>, buffer>(
    std::size_t bucket, int version, bool gradients)>;

  /// \param plan outlives the meeting \param lend,account empty where nothing is
  /// computed
  /// \pre the stage has experts
  expert_meeting(const run_plan& plan, position where, lender lend,
                 memory_account* account);

  /// The rows of a layer, counted over the network, and the operation that experts
  /// apply. That is the operation of the action under way, or a recomputation within
  /// the action.
  struct rows_of_layer {
    std::size_t layer;
    shard_collective<float> rows;
    op operation;
  };

  /// An action begins that reads this version. `steps` has an entry for each step.
  void expect(const action& a, int version, std::vector<rows_of_layer> steps);

  meeting_messages begin(int index) override;
  meeting_messages receive(mail::meeting_message received) override;
  bool is_done(int) const override { return missing_.empty(); }
  std::optional<missing_peer> waits_for() const override;

  /// The experts' share of an action's work, from 0 to 1.
  double share() const { return share_; }

  /// Starts a new sum of gradients: the earlier gradients belong to an update.
  void begin_update() { sums_begun_.clear(); }

  /// The numbers of rows for each expert since the last call.
  std::vector<mail::expert_load> take_loads() { return std::exchange(loads_, {}); }

private:
  bool belongs_to(int expert, std::size_t layer) const;
  std::int64_t rows_for(int expert, const shard_collective<float>& layer_rows) const;
  std::optional<mail::lent_arrays> loan_for(int number, op operation) const;
  mail::meeting_message message_to(int number, const action& expert_action,
                                   std::int64_t rows, std::int64_t offset,
                                   bool begins_sum);

  const run_plan* plan_;
  position where_;
  lender lend_;
  double share_;
  std::vector<int> experts_; // experts of the stage, in the network's list
  std::vector<layer_bucket> buckets_;
  std::unique_ptr<pool> payloads_; // null where nothing is computed
  std::int64_t width_;             // values per row
  action action_{};                // the action under way
  int version_ = 0;
  std::vector<rows_of_layer> expected_;
  float* array_ = nullptr;
  // offset and length of each expert's rows
  std::vector<std::pair<std::int64_t, std::int64_t>> row_ranges_;
  // experts that have not answered
  std::vector<int> missing_;
  std::vector<std::size_t> sums_begun_; // layers
  std::vector<mail::expert_load> loads_;
};

} // namespace troupe
