// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

// The ledger of weight versions of one stage.

namespace troupe {

/// Tracks which versions of a stage's parameters are alive. Alive are the newest
/// version, versions held by a microbatch in flight, and versions that a later forward
/// may read.
class version_ledger {
public:
  /// Starts with version 0 as the newest.
  /// \param older number of versions before version 0 that exist
  explicit version_ledger(int older = 0);

  int newest() const { return alive_.back().number; }
  bool contains(int version) const;

  /// Keeps `version` alive for a microbatch until release().
  /// \pre contains(version)
  void hold(int version);
  /// Ends one hold() of `version`, and drops versions that are not needed.
  /// \pre contains(version)
  void release(int version);

  /// Declares that later forwards read no version below `oldest`, and drops versions
  /// that are not needed. Versions that the first call drops, before any update, do not
  /// count in peak().
  void need_from(int oldest);

  /// Makes version newest() + 1. Returns true if the new version replaces the newest
  /// one in place, because the newest one is no longer needed.
  bool advance();

  int alive() const { return static_cast<int>(alive_.size()); }

  /// The largest number of versions so far that were alive at the same time.
  int peak() const { return peak_; }

private:
  struct entry {
    int number;
    int holders;
  };

  entry& find(int version);
  void prune();

  std::vector<entry> alive_; // oldest first
  int oldest_needed_ = 0;
  int peak_ = 1;
};

} // namespace troupe
