// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"
#include "schedules/version_ledger.hpp"

#include <cstdint>
#include <vector>

// The ledger of one stage: microbatches in flight, weight versions, and facts about
// updates.

namespace troupe {

/// The versions and gradients of one update of a stage.
struct update_facts {
  int from = 0; ///< Number of the newest version; the update makes the next version.
  /// True if the update overwrites `from`, which is no longer needed.
  bool in_place = false;
  /// Number of gradients that this direction's stage has summed for the update.
  int gradients = 0;
  /// The largest staleness of a gradient: `from` minus the version that the gradient's
  /// forward read.
  int stalest = 0;
  std::int64_t staleness = 0; ///< The sum of the staleness of all gradients.
};

/// Tracks which microbatches one stage holds, which weight version each microbatch
/// reads, and which versions are alive. Independent of tensors and time. A microbatch
/// in flight takes an entry of 8 bytes in a table; the number of entries is a power of
/// two.
class stage_version_ledger {
public:
  /// \param sch outlives this object
  stage_version_ledger(const schedule& sch, const shape& dims, hosted_stage where);

  /// True if end_update() has made the version that the forward of `microbatch` reads,
  /// or if the weight rule has no formula.
  bool can_forward(int microbatch) const;

  /// Starts a forward. Returns the version that the forward reads.
  /// \pre can_forward(microbatch)
  int begin_forward(int microbatch);

  /// The version that a backward, input gradient or weight gradient reads.
  /// \throws std::logic_error unless `microbatch` is in flight
  int version_for_backward(int microbatch) const;

  /// Ends a backward or weight gradient: the gradient is summed, and the stash is free.
  /// \throws std::logic_error unless `microbatch` is in flight
  void end_backward(int microbatch);

  /// Starts an update with the gradients summed since the last update, and returns the
  /// facts of the update. The version that the update makes exists after end_update().
  update_facts begin_update();
  void end_update() { ++newest_made_; }

  /// The newest version; from begin_update() on, the version that the update makes.
  int newest() const { return versions_.newest(); }
  bool knows(int version) const { return versions_.contains(version); }
  int versions_alive() const { return versions_.alive(); }
  int versions_peak() const { return versions_.peak(); }
  /// Number of microbatches in flight.
  int held() const { return held_; }
  int peak_held() const { return peak_held_; }
  /// Number of gradients summed since the last begin_update().
  int summed() const { return summed_; }

  /// The lowest microbatch in flight; -1 if there is none.
  int oldest_held() const;

private:
  /// A microbatch in flight. The index in the table is the microbatch modulo the
  /// table's size.
  struct entry {
    int microbatch = -1; // -1: a free entry
    int version = 0;     // that the forward read
  };

  entry& entry_of(int microbatch);
  const entry& entry_of(int microbatch) const;
  void grow();

  const schedule* schedule_;
  shape dims_;
  hosted_stage where_;
  version_ledger versions_;
  std::vector<entry> in_flight_; // size: a power of two
  int forwarded_ = 0;
  int newest_made_ = 0; // the newest version that exists
  int held_ = 0;
  int peak_held_ = 0;
  int summed_ = 0;
  // the oldest version that a forward of a summed gradient has read
  int oldest_read_ = 0;
  std::int64_t sum_of_reads_ = 0; // of the versions that these forwards have read
};

} // namespace troupe
