// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"
#include "schedules/version_ledger.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// What an update of a stage starts from.
struct update_facts {
  int from = 0;          ///< The newest version; the update makes the next.
  bool in_place = false; ///< Nobody needs `from` any more.
  int gradients = 0;     ///< Microbatches it covers.
  /// `from` minus the version that a gradient's forward read: the largest, and the sum.
  int stalest = 0;
  std::int64_t staleness = 0;
};

/// The books of one stage: which microbatches it holds, which version of its weights
/// each reads, and which versions are alive. Knows nothing of tensors or time. A
/// microbatch takes 8 bytes.
class stage_ledger {
public:
  /// \param sch outlives the ledger
  stage_ledger(const schedule& sch, const shape& dims, hosted_stage where);

  /// Whether the version that this forward reads has been made.
  bool can_forward(int microbatch) const;

  /// Returns the version that it reads. \pre can_forward(microbatch)
  int begin_forward(int microbatch);

  /// The version that a backward, input gradient or weight gradient reads.
  int version_for_backward(int microbatch) const;

  /// A B or W has ended: its gradient is summed, what it held is free.
  void end_backward(int microbatch);

  /// Starts an update with what has been summed since the last. The version that it
  /// makes is there when it has ended.
  update_facts begin_update();
  void end_update() { ++made_; }

  int newest() const { return versions_.newest(); }
  bool knows(int version) const { return versions_.contains(version); }
  int versions_alive() const { return versions_.alive(); }
  int versions_peak() const { return versions_.peak(); }
  int held() const { return held_; }
  int peak_held() const { return peak_held_; }
  int summed() const { return summed_; }

  /// The lowest microbatch held, or -1.
  int oldest_held() const;

private:
  /// A microbatch in flight at its place modulo the table's size, or nothing (-1).
  struct entry {
    int microbatch = -1;
    int version = 0; // that its forward read
  };

  entry& at(int microbatch);
  const entry& at(int microbatch) const;
  void grow();

  const schedule* schedule_;
  shape dims_;
  hosted_stage where_;
  version_ledger versions_;
  std::vector<entry> in_flight_; // a power of two
  int forwarded_ = 0;
  int made_ = 0; // the newest version that is there
  int held_ = 0;
  int peak_held_ = 0;
  int summed_ = 0;
  int oldest_read_ = 0; // by the forwards of what is summed
  std::int64_t sum_of_reads_ = 0;
};

} // namespace troupe
