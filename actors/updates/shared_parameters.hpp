// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"
#include "plan/run_plan.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

// Parameters that each data replica updates with its own gradients, without a sum over
// replicas, and measures of the staleness that results.

namespace troupe {

/// One access to shared parameters: an update with a data replica's gradients, or a
/// read of the current values by a replica.
struct shared_access {
  int data;
  bool update;

  bool operator==(const shared_access&) const = default;
};

/// Staleness of a data replica's updates that the exchange causes, in addition to the
/// schedule's staleness. The staleness of an update is the number of other replicas'
/// updates since the replica's last read.
struct exchange_staleness {
  std::int64_t most = 0;    ///< Largest staleness of an update.
  std::int64_t sum = 0;     ///< Sum of the staleness of all updates.
  std::int64_t updates = 0; ///< Number of updates.
};

/// Parameters of a stage that each data replica updates with its own gradients. An
/// object of a parameter server has one share of the parameters, and one thread at a
/// time calls the object. With Hogwild all replicas share one object with all
/// parameters, and write without locks (Niu et al., "Hogwild!: A Lock-Free Approach to
/// Parallelizing Stochastic Gradient Descent", 2011). Replicas then call update() and
/// read() on several threads at the same time, so each value is read and written by
/// relaxed atomics. Calls of one replica follow one another; no call waits for another
/// replica.
class shared_parameters {
public:
  /// Reads the initial values from the plan's weights. Does not keep `plan`.
  /// \param account counts the memory, and is not kept; null in a simulation, which has
  /// no values
  shared_parameters(const run_plan& plan, position where, memory_account* account);

  /// Applies the gradients that data replica `data` has summed over `samples` samples.
  /// In a simulation only counts the update.
  /// \param factor factor of the gradients from clipping; 1 without clipping
  /// \param state null in a simulation
  /// \param compute_stream null in a simulation
  void update(int data, std::int64_t samples, double factor,
              const std::vector<buffer>& gradients, optimizer* state,
              stream* compute_stream);

  /// Copies the current values into a data replica's next version: a share goes to the
  /// share's offset in each bucket of `to`. Called once after each update of that
  /// replica, so all forwards of that version read the same values.
  void read(int data, const std::vector<buffer>& to);

  /// Copies the current values into the buckets of the network: a share goes to the
  /// share's offset in each bucket of the stage's layers.
  /// \param network one whole bucket per layer
  /// \pre no update is under way
  void put_into(std::vector<std::vector<float>>& network) const;

  /// Accesses in order, if the plan keeps a record, and runs in virtual time or with
  /// parameter servers; else empty.
  /// \pre no update is under way
  const std::vector<shared_access>& history() const { return history_; }

  /// Staleness of the updates so far, by data replica. Valid as long as this object.
  /// \pre no update is under way
  const std::vector<exchange_staleness>& staleness() const { return staleness_; }

private:
  void note(int data, bool update);

  std::size_t first_layer_ = 0;
  std::vector<std::int64_t> sizes_;    // of whole buckets
  bucket_shares shares_;               // of each bucket
  std::vector<tensor_memory> buckets_; // of the shares; none in a simulation
  std::atomic<std::int64_t> updates_ = 0;
  std::atomic<std::int64_t> samples_ = 0; // of these updates, and of batches before the
                                          // run
  std::vector<std::int64_t> read_at_; // by data replica: `updates_` at the last read
  std::vector<exchange_staleness> staleness_;
  bool keeps_history_;
  std::vector<shared_access> history_;
};

/// The shared parameters of a run: all stages of data replica 0 (tensor shard by tensor
/// shard), then of replica 1. Null entries where a position has none.
using all_shared_parameters = std::vector<std::shared_ptr<shared_parameters>>;

/// The accesses to each entry of `all_shared_parameters`, by the same index.
using shared_history = std::vector<std::vector<shared_access>>;
shared_history history_of(const all_shared_parameters& run_parameters);

/// Largest and mean staleness of updates in a run, one value per stage, over all
/// servers, data replicas and updates; 0 for a stage without updates.
struct exchange_measures {
  std::vector<std::int64_t> max;
  std::vector<double> mean;
};
exchange_measures measures_of(const all_shared_parameters& run_parameters, int stages);

} // namespace troupe
