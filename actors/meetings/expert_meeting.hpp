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

/// A stage and the experts of its layers: at each occasion rows go to all experts of a
/// layer, and what these make of them takes the rows' place. It is an all_to_all of
/// unequal parts between the ranks of a group; each part goes straight to the expert
/// that it is for. An occasion is a layer of the action under way.
class expert_meeting : public meeting {
public:
  /// Lends the parameters of a version and, of backwards, the gradients of a bucket.
  using lender = std::function<std::pair<weight_place<float>, buffer>(
    std::size_t bucket, int version, bool gradients)>;

  /// \param plan outlives it \param lend,account empty where nothing is computed
  /// \pre the stage has experts
  expert_meeting(const run_plan& plan, position where, lender lend,
                 memory_account* account);

  /// The rows of a layer, counted over the network, and what experts make of them: what
  /// the action under way is, or a recomputation within it.
  struct rows_of_layer {
    std::size_t layer;
    shard_collective<float> rows;
    op what;
  };

  /// An action begins that reads this version, and will ask experts these times.
  void expect(const action& a, int version, std::vector<rows_of_layer> all);

  letters begin(int occasion) override;
  letters take(mail::letter what) override;
  bool over(int) const override { return missing_.empty(); }
  std::optional<absence> waits_for() const override;

  /// The share of an action's work that is the experts'.
  double share() const { return share_; }

  /// The gradients that experts have summed belong to an update.
  void begin_update() { sums_begun_.clear(); }

  /// How rows fell to experts since it was asked last.
  std::vector<mail::expert_load> take_loads() { return std::exchange(loads_, {}); }

private:
  bool belongs_to(int expert, std::size_t layer) const;
  std::int64_t rows_for(int expert, const shard_collective<float>& what) const;
  std::optional<mail::expert_loan> loan_for(int number, op what) const;
  mail::letter letter_to(int number, const action& what, std::int64_t rows,
                         std::int64_t place, bool begins_sum);

  const run_plan* plan_;
  position where_;
  lender lend_;
  double share_;
  std::vector<int> experts_; // of the stage, in the network's list
  std::vector<layer_bucket> buckets_;
  std::unique_ptr<pool> payloads_; // null where nothing is computed
  std::int64_t width_;             // of a row
  action what_{};                  // the action under way
  int version_ = 0;
  std::vector<rows_of_layer> expected_;
  float* array_ = nullptr;
  std::vector<std::pair<std::int64_t, std::int64_t>> places_; // of each expert's rows
  std::vector<int> missing_;                                  // of the stage's
  std::vector<std::size_t> sums_begun_;                       // layers
  std::vector<mail::expert_load> loads_;
};

} // namespace troupe
