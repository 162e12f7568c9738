// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

namespace troupe {

/// Which versions of a stage's parameters are alive: the newest, those that a
/// microbatch in flight holds, and those that a later forward may still read.
class version_ledger {
public:
  /// At the start number 0 is the newest. \param older versions before it that are
  /// there
  explicit version_ledger(int older = 0);

  int newest() const { return alive_.back().number; }
  bool contains(int version) const;

  /// A microbatch keeps `version` alive until it releases it. \pre contains(version)
  void hold(int version);
  void release(int version);

  /// Forwards to come read versions of at least `oldest`. What is there at the start
  /// and nobody needs does not count for peak().
  void need_from(int oldest);

  /// Makes version newest() + 1; true if it takes the place of the newest, which nobody
  /// needs any more.
  bool advance();

  int alive() const { return static_cast<int>(alive_.size()); }

  /// The most versions alive at once, so far.
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
