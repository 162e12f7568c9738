#pragma once

#include "actors/plan/saved_piece.hpp"
#include "messaging/collective.hpp"
#include "messaging/mail/control.hpp"
#include "models/optimizer.hpp"

#include <memory>
#include <vector>

namespace troupe {

/// A version that a stage still knows.
struct aged_version {
  int age; ///< 0 is the newest.
  std::vector<buffer> buckets;
};

/// Copies what a stage and its optimizer shard have, for a checkpoint. There is room
/// for one checkpoint's copies.
class stage_saver {
public:
  /// \param versions,moments room for copies (saved_versions(), saved_moments()), which
  /// the account gives
  stage_saver(const run_plan& plan, position where,
              std::shared_ptr<const optimizer> state, const payload_bound& versions,
              const payload_bound& moments, memory_account& account);

  /// Whose they are and of which batch, the stage says.
  /// \pre nothing is computed, and nobody holds the copies of the last checkpoint
  mail::saved copy(const std::vector<aged_version>& versions);

private:
  std::shared_ptr<const optimizer> state_;
  std::vector<saved_piece> of_versions_, of_moments_;
  std::vector<std::int64_t> firsts_; // of each bucket: the first value that it holds
  pool versions_, moments_;
};

} // namespace troupe
