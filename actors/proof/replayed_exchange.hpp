// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/updates/shared_parameters.hpp"
#include "kernels/space_allocator.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// The parameters of one stage that data replicas update one by one, for a replay:
/// share by share, they are updated and read in the order of a history.
class replayed_exchange {
public:
  using buckets = std::vector<vector_in<float>>;

  /// \param histories of each share, or of the whole alone
  replayed_exchange(const run_plan& plan, const layer_list<float>& layers,
                    buckets initial, std::vector<std::vector<shared_access>> histories);

  /// A data replica's update has come. \pre not under_way(data)
  void push(int data, std::int64_t samples, double factor, buckets gradients);
  bool under_way(int data) const { return of(data).has_value(); }

  /// The version that a data replica gets for its push, once; absent if by the history
  /// others have something to do before.
  std::optional<buckets> pull(int data);

  /// Whether all histories are at their end.
  bool over() const;

  const buckets& parameters() const { return parameters_; }

private:
  struct pushed {
    std::int64_t samples;
    double factor;
    buckets gradients;
    buckets version;
    std::vector<int> done; // of each share: 1 when it was applied, 2 when answered
  };

  struct share {
    bucket_share which; // of every bucket
    std::vector<shared_access> history;
    std::size_t next = 0;
    std::int64_t samples = 0;
    std::vector<optimizer> optimizers; // one, or one a data replica
  };

  std::optional<pushed>& of(int data) {
    return pushed_[static_cast<std::size_t>(data)];
  }
  const std::optional<pushed>& of(int data) const {
    return pushed_[static_cast<std::size_t>(data)];
  }
  bool step(std::size_t which);

  buckets parameters_;
  std::vector<share> shares_;
  std::vector<std::optional<pushed>> pushed_; // a data replica each
  memory_account account_;
};

} // namespace troupe
