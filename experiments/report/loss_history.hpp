// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/progress.hpp"
#include "messaging/bounded_list.hpp"

#include <cstdint>
#include <deque>
#include <vector>

namespace troupe {

/// The losses of a training over all starts of a run, each once. At most `most_entries`
/// are settled; the newest stay apart, as a new start may train on their samples again.
class loss_history {
public:
  /// \param before samples of the training before the run's first start
  /// \param apart newest losses that stay apart
  loss_history(std::int64_t before, std::size_t apart);

  /// The next losses of the current start.
  void add(const std::vector<loss_so_far>& losses);

  /// A start goes on behind `before` samples of the training: later losses come again.
  void begin_again(std::int64_t before);

  /// Mean losses, and the samples of the training at the end of each.
  struct series {
    std::vector<double> loss;
    std::vector<std::int64_t> samples;
    std::int64_t every = 1;   ///< Losses that make an entry; some may be of fewer.
    std::int64_t missing = 0; ///< Samples before the newest whose losses are not there.
    std::int64_t before = 0;  ///< Samples of the training before the first entry.
  };
  series all() const;

private:
  struct entry {
    double loss;          // of a prediction
    std::int64_t samples; // of this entry
    std::int64_t end;     // samples of the training
  };

  static void merge(entry& a, const entry& b);

  std::int64_t first_;     // samples before the first start
  std::int64_t start_;     // and before the current one
  std::int64_t last_;      // at the end of the newest loss, or of the current start
  std::int64_t known_ = 0; // of all entries
  std::size_t apart_;
  bounded_list<entry> settled_{most_entries};
  std::deque<entry> newest_;
};

} // namespace troupe
