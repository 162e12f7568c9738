// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/progress.hpp"
#include "messaging/bounded_list.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace troupe {

/// The losses of a training over all starts of a run, each loss once. Older losses are
/// merged to means, at most `most_entries`. The newest `apart` losses are not merged,
/// as a new start may train on the same samples again.
class loss_history {
public:
  /// \param samples_before samples of the training before the run's first start
  /// \param apart number of the newest losses that are not merged
  loss_history(std::int64_t samples_before, std::size_t apart);

  /// Adds the next losses of the current start. `samples` of a loss counts from that
  /// start.
  void add(const std::vector<loss_so_far>& losses);

  /// Starts again after `samples_before` samples of the training. Losses of later
  /// samples are removed, as these losses come again. A mean that ends at a later
  /// sample is removed as a whole.
  void restart(std::int64_t samples_before);

  /// Mean losses, and the number of the training's samples at the end of each mean.
  struct series {
    std::vector<double> loss;
    std::vector<std::int64_t> samples;
    /// Number of losses of which an entry is the mean; some entries have fewer.
    std::int64_t every = 1;
    /// Number of samples without a known loss, before the newest loss. If the current
    /// start has no loss yet: before the current start.
    std::int64_t missing = 0;
    /// Samples of the training before the run's first start.
    std::int64_t samples_before = 0;
  };
  /// The losses of all starts so far.
  series summary() const;

private:
  struct entry {
    double loss;          // mean of the predictions
    std::int64_t samples; // samples of this entry
    std::int64_t end;     // samples of the training
  };

  static void merge(entry& a, const entry& b);

  std::int64_t first_; // samples before the first start
  std::int64_t start_; // samples before the current start
  std::int64_t last_;  // samples at the end of the newest loss, or at the current start
  std::int64_t known_ = 0; // samples of all entries
  std::size_t apart_;
  bounded_list<entry> settled_{most_entries};
  std::deque<entry> newest_;
};

} // namespace troupe
