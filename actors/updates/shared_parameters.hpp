// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "kernels/pool.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// One thing done with shared parameters: a data replica's gradients were applied, or
/// it got what was there then.
struct shared_access {
  int data;
  bool update;

  bool operator==(const shared_access&) const = default;
};

/// How many updates of others came between what a data replica read and its own update:
/// the staleness of its gradients, as far as it is not its schedule's.
struct exchange_staleness {
  std::int64_t most = 0;
  std::int64_t sum = 0;
  std::int64_t updates = 0;
};

/// Parameters of a stage that data replicas update one by one: the share of them that a
/// parameter server has, or all of them where replicas write them without locks (Niu et
/// al., "Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent",
/// 2011). For that, each value is read and written by relaxed atomics; a replica's
/// calls follow one another, and nobody waits for anybody.
class shared_parameters {
public:
  /// \param account null where nothing is computed
  shared_parameters(const run_plan& plan, position where, memory_account* account);

  /// Whether a stage has some: every server, or the first data replica for all.
  static bool are_at(const run_plan& plan, position where);

  /// Applies a data replica's gradients.
  /// \param state,on null where nothing is computed
  void update(int data, std::int64_t samples, double factor,
              const std::vector<buffer>& gradients, optimizer* state, stream* on);

  /// Copies what is there to its place in a data replica's next version: when its own
  /// update has been applied, so all forwards of that version read the same.
  void read(int data, const std::vector<buffer>& to);

  /// Copies what is there to its place among the buckets of the network.
  void put_into(std::vector<std::vector<float>>& network) const;

  /// What was done, in order, if the plan keeps a record and the order is one.
  const std::vector<shared_access>& history() const { return history_; }

  const std::vector<exchange_staleness>& staleness() const { return staleness_; }

private:
  void note(int data, bool update);

  std::size_t first_layer_ = 0;
  std::vector<std::int64_t> sizes_;    // of whole buckets
  bucket_shares shares_;               // of each
  std::vector<tensor_memory> buckets_; // of the shares; none in a simulation
  std::atomic<std::int64_t> updates_ = 0;
  std::atomic<std::int64_t> samples_ = 0; // of those
  std::vector<std::int64_t> read_at_;     // a data replica each: updates_ then
  std::vector<exchange_staleness> staleness_;
  bool keeps_history_;
  std::vector<shared_access> history_;
};

/// Those of a run: all stages of data replica 0 (and there of each tensor shard), then
/// of 1; null where there are none.
using all_shared_parameters = std::vector<std::shared_ptr<shared_parameters>>;

/// What was done with each of them.
using shared_history = std::vector<std::vector<shared_access>>;
shared_history history_of(const all_shared_parameters& all);

/// The staleness of a run, a value a stage: over servers, data replicas and updates.
struct exchange_measures {
  std::vector<std::int64_t> max;
  std::vector<double> mean;
};
exchange_measures measures_of(const all_shared_parameters& all, int stages);

} // namespace troupe
