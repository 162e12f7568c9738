// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/updates/shared_parameters.hpp"
#include "kernels/space_allocator.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// The parameters of one stage that data replicas update one by one, for a replay. Each
/// share of the parameters is updated and read in the order of the recorded history.
/// The object keeps no reference to the plan and the layers.
class replayed_exchange {
public:
  using buckets = std::vector<vector_in<float>>;

  /// \param initial first version of the parameters, by bucket
  /// \param histories the accesses to each share, in order; one history if the
  /// parameters have no shares
  /// \pre plan.work
  replayed_exchange(const run_plan& plan, const layer_list<float>& layers,
                    buckets initial, std::vector<std::vector<shared_access>> histories);

  /// Adds a data replica's update: the gradients, the number of samples in the sum, and
  /// the factor of clipping.
  /// \pre not under_way(data)
  void push(int data, std::int64_t samples, double factor, buckets gradients);
  /// True from push() until pull() has returned the version.
  bool under_way(int data) const { return update_of(data).has_value(); }

  /// Makes the recorded accesses as far as pushes exist. Returns the version that a
  /// data replica reads after its push, once for each push. Absent if earlier accesses
  /// of other data replicas lack their pushes, or if the histories lack the push's
  /// accesses.
  /// \pre under_way(data)
  std::optional<buckets> pull(int data);

  /// True if all accesses of all histories are done.
  bool finished() const;

  /// The parameters after the accesses made so far.
  const buckets& parameters() const { return parameters_; }

private:
  struct pushed {
    std::int64_t samples;
    double factor;
    buckets gradients;
    buckets version;
    std::vector<int> done; // by share: 1 after the update, 2 after the read
  };

  struct share {
    bucket_share which; // the share's part of every bucket
    std::vector<shared_access> history;
    std::size_t next = 0;
    std::int64_t samples = 0;
    std::vector<optimizer> optimizers; // one; with Hogwild one for each data replica
  };

  std::optional<pushed>& update_of(int data) {
    return pushed_[static_cast<std::size_t>(data)];
  }
  const std::optional<pushed>& update_of(int data) const {
    return pushed_[static_cast<std::size_t>(data)];
  }
  bool step(std::size_t which);

  buckets parameters_;
  std::vector<share> shares_;
  std::vector<std::optional<pushed>> pushed_; // by data replica
  memory_account account_;
};

} // namespace troupe
