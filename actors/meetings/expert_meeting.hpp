// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "kernels/pool.hpp"
#include "messaging/mail/reports.hpp"
#include "models/layer.hpp"
#include "plan/expert_sizes.hpp"
#include "plan/layout.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace troupe {

/// The meeting of a stage with the experts of the stage's layers. At each step the
/// stage sends rows to all experts of a layer, and the experts' results replace the
/// rows. A weight gradient sends only the numbers of rows; its answers have no rows. In
/// a simulation without arithmetic a step covers all experts of the stage, with equal
/// numbers of rows. The exchange is an all_to_all of unequal parts between the ranks of
/// a group; each part goes directly to one expert. The index of a step is the index in
/// the list that expect() received.
class expert_meeting : public meeting {
public:
  /// Returns a bucket's parameters in a version, and the buffer of the bucket's
  /// gradients. The buffer is empty unless `gradients`. The parameters stay valid until
  /// the action ends.
  using lender = std::function<std::pair<weight_place<float>, buffer>(
    std::size_t bucket, int version, bool gradients)>;

  /// \param plan outlives the meeting
  /// \param lend empty where nothing is computed; else objects to which the function
  /// refers outlive the meeting
  /// \param account pays for the rows in messages, and outlives the meeting; unused,
  /// and may be null, where nothing is computed
  /// \pre the stage has experts
  expert_meeting(const run_plan& plan, position where, lender lend,
                 memory_account* account);

  /// The rows of one layer for experts, and the operation that the experts apply: the
  /// action's operation, or a recomputation within the action.
  struct rows_of_layer {
    std::size_t layer; ///< Index in the network.
    shard_collective<float> rows;
    op operation;
  };

  /// To be called when an action begins. The arrays in `steps` must stay valid until
  /// the action ends.
  /// \param version of the weights that the action reads
  /// \param steps one entry for each step, in order
  void expect(const action& a, int version, std::vector<rows_of_layer> steps);

  meeting_messages begin(int index) override;
  meeting_messages receive(mail::meeting_message received) override;
  bool is_done(int) const override { return missing_.empty(); }
  std::optional<missing_peer> waits_for() const override;

  /// The experts' share of the operations of an action, from 0 to 1: equal for all
  /// actions of the stage. Without plan.work the share is simulated_expert_share.
  double share() const { return share_; }

  /// To be called when an update begins: later gradients of each layer start a new sum.
  void begin_update() { sums_begun_.clear(); }

  /// Returns the loads since the last call, one for each forward of a layer with
  /// experts. A load has the rows that this stage has sent to each expert, and the
  /// dropped rows. Recomputations add no loads. Empty where nothing is computed.
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
  std::vector<int> experts_; // the stage's experts: indexes in the network's list
  std::vector<layer_bucket> buckets_;
  std::unique_ptr<pool> payloads_; // null where nothing is computed
  std::int64_t width_;             // values per row
  action action_{};                // the action under way
  int version_ = 0;
  std::vector<rows_of_layer> expected_;
  float* array_ = nullptr;
  // offset and length of each expert's rows
  std::vector<std::pair<std::int64_t, std::int64_t>> row_ranges_;
  // experts that have not answered: indexes in `experts_`
  std::vector<int> missing_;
  std::vector<std::size_t> sums_begun_; // layers with gradients since the update
  std::vector<mail::expert_load> loads_;
};

} // namespace troupe
