// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective.hpp"
#include "messaging/mail/control.hpp"
#include "models/optimizer.hpp"
#include "plan/saved_piece.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace troupe {

struct copies_bound;

/// A weight version that a stage still holds. The buckets refer to the stage's memory,
/// and are valid until the stage's next update.
struct aged_version {
  int age; ///< Number of updates since the version: 0 for the newest version.
  std::vector<weight_bucket<float>> buckets;
};

/// Copies the state of a stage and of its optimizer shard into buffers: the values that
/// the stage saves (saved_piece.hpp).
class stage_copies {
public:
  /// \param state the optimizer shard's state
  /// \param saved_by whether the first holder of a value copies the value, or every
  /// holder
  /// \param bound number and size of the copies' buffers, allocated from `account`
  /// \param account outlives this object, which outlives all copies
  /// \pre plan.work
  stage_copies(const run_plan& plan, position where,
               std::shared_ptr<const optimizer> state, savers saved_by,
               const copies_bound& bound, memory_account& account);

  /// Returns copies of the versions and state arrays, and the number of updates. The
  /// result has no version buffers if the stage saves no values of versions, and no
  /// state buffers if the stage saves no values of state arrays. The caller fills in
  /// the batch and the stage's position. \pre no work of the stage runs, and enough
  /// buffers are free
  mail::saved copy(const std::vector<aged_version>& versions);

private:
  std::shared_ptr<const optimizer> state_;
  std::vector<saved_piece> version_pieces_, state_pieces_;
  std::vector<std::int64_t> firsts_; // by bucket: index of the first value held
  pool versions_, state_arrays_;
};

/// A stage's copies for checkpoints, and the copies that the stage itself keeps so that
/// a run can resume after a node is lost.
class stage_saver {
public:
  /// \param state the optimizer shard's state
  /// \param account pays for the buffers; outlives this object, which outlives all
  /// copies
  /// \pre plan.work
  stage_saver(const run_plan& plan, position where,
              const std::shared_ptr<const optimizer>& state, memory_account& account);

  /// Returns copies for a checkpoint. The buffers suffice for one checkpoint.
  /// \param batches finished by the run
  /// \pre the plan has checkpoints
  /// \pre no work of the stage runs, and no handles of the last checkpoint's copies
  /// remain
  mail::saved copy(int batches, const std::vector<aged_version>& versions);

  /// Keeps a copy of the stage's whole state, and drops all earlier copies except the
  /// most recent. Another stage may be lost before keeping the same batch; the run then
  /// resumes from the earlier copy.
  /// \param batches finished by the run
  /// \pre the plan keeps steps (state_copies::keep_steps), and no work of the stage
  /// runs \pre no handles remain of the copies that the call drops
  void keep(int batches, const std::vector<aged_version>& versions);

  /// Returns the copies kept after `batches` batches, which stay kept. The result has
  /// no arrays if the stage has dropped these copies, or kept none after `batches`
  /// batches.
  mail::saved fetch_kept_state(int batches) const;

private:
  position where_;
  stage_copies checkpoint_copies_, step_copies_;
  std::deque<mail::saved> kept_; // the newest last
};

} // namespace troupe
