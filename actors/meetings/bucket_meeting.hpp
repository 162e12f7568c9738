#pragma once

#include "actors/plan/run_plan.hpp"
#include "kernels/pool.hpp"
#include "messaging/collectives_under_way.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// Where copies of a stage's buckets travel between data replicas: a pool a bucket.
class exchange_pools {
public:
  exchange_pools(const run_plan& plan, position where, exchange_step step,
                 memory_account& account);

  pool* of(int bucket) const { return pools_[static_cast<std::size_t>(bucket)].get(); }

  /// Values that they take in all.
  static std::int64_t values(const run_plan& plan, position where, exchange_step step);

private:
  std::vector<std::unique_ptr<pool>> pools_;
};

/// A data replica's part in one step of an exchange for one stage, update by update: a
/// collective a bucket, so that those of the last layers are on their way while the
/// first are still made.
class bucket_exchange {
public:
  /// \param pools null where nothing is computed
  bucket_exchange(const run_plan& plan, position where, exchange_step step,
                  std::shared_ptr<exchange_pools> pools);

  /// This data replica has its own values of a bucket. They belong to the exchange
  /// until it is done. Returns what is to be sent now.
  std::vector<collective_message> begin(int bucket, float* values);

  /// The data replica that a message of it is for.
  int receiver_of(const collective_message& message) const {
    return replica_of(message.instance, message.to);
  }

  /// Whether a message belongs to it.
  bool owns(const collective_message& message) const;

  std::vector<collective_message> take(collective_message message);

  /// Whether all buckets of this update are exchanged.
  bool done() const { return done_ == buckets(); }

  int buckets() const { return static_cast<int>(values_.size()); }

  /// The next begin() belongs to the next update. \pre done()
  void next_update();

  /// The data replica without whose message it cannot go on; absent if it need not.
  std::optional<int> waits_for() const {
    const auto missing = under_way_.waits_for();
    return missing ? std::optional{replica_of(missing->instance, missing->from)}
                   : std::nullopt;
  }

private:
  int replica_of(int instance, int member) const;
  std::vector<collective_message> note(int instance,
                                       std::vector<collective_message> out);

  const collective_order* order_;
  int replica_;
  std::vector<bucket_group> groups_; // of each bucket
  std::vector<std::int64_t> values_; // of each bucket
  int first_instance_;
  std::shared_ptr<exchange_pools> pools_;
  bool odd_update_ = false; // no more than two can be under way
  int done_ = 0;
  collectives_under_way under_way_;
};

} // namespace troupe
