// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/saved_piece.hpp"
#include "messaging/collective.hpp"
#include "messaging/mail/control.hpp"
#include "models/optimizer.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace troupe {

struct copies_bound;

/// A version that a stage still knows.
struct aged_version {
  int age; ///< 0 is the newest.
  std::vector<weight_bucket<float>> buckets;
};

/// Copies what a stage and its optimizer shard have.
class stage_copies {
public:
  /// \param room for copies, which the account gives
  stage_copies(const run_plan& plan, position where,
               std::shared_ptr<const optimizer> state, savers who,
               const copies_bound& room, memory_account& account);

  /// Whose they are and of which batch, the stage says.
  /// \pre nothing is computed, and there is room
  mail::saved copy(const std::vector<aged_version>& versions);

private:
  std::shared_ptr<const optimizer> state_;
  std::vector<saved_piece> of_versions_, of_moments_;
  std::vector<std::int64_t> firsts_; // of each bucket: the first value that it holds
  pool versions_, moments_;
};

/// A stage's copies for checkpoints, and of steps that it keeps.
class stage_saver {
public:
  stage_saver(const run_plan& plan, position where,
              const std::shared_ptr<const optimizer>& state, memory_account& account);

  /// Copies for a checkpoint; there is room for those of one.
  /// \pre nothing is computed, and nobody holds the last checkpoint's
  mail::saved copy(int batches, const std::vector<aged_version>& versions);

  /// Keeps all that the stage has, and forgets all that it kept but the last: other
  /// stages may be lost before they have kept this one. \pre nothing is computed
  void keep(int batches, const std::vector<aged_version>& versions);

  /// What it has kept; nothing if that was forgotten, or never kept.
  mail::saved recall(int batches) const;

private:
  position where_;
  stage_copies of_checkpoints_, of_steps_;
  std::deque<mail::saved> kept_; // the newest last
};

} // namespace troupe
