#pragma once

#include "actors/gradient_exchange.hpp"
#include "actors/messages.hpp"
#include "actors/port.hpp"
#include "actors/props.hpp"
#include "models/optimizer.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What an optimizer shard computes with; both are null where it does not.
struct optimizer_memory {
  std::shared_ptr<optimizer> state;
  std::shared_ptr<exchange_pools> pools; ///< Null too without other data replicas.
};

/// The update of one stage and its replicas: gathers their gradients, adds them in
/// replica order and then, by an exchange, those of all data replicas, and writes the
/// next version to each. Without an optimizer it only keeps count.
class optimizer_core {
public:
  /// \param where any replica of the stage
  optimizer_core(const run_plan& plan, position where, optimizer_memory memory);

  /// A replica's gradients of a bucket are complete. Returns what other data replicas
  /// are to be sent.
  std::vector<collective_message> take(const mail::bucket_ready& part);
  std::vector<collective_message> take(const collective_message& message);

  /// Whether all that others have to give to this update is here.
  bool complete() const;

  /// Takes a replica's part.
  void take(const mail::update_request& part);

  /// Whether the norm over all stages must be known before the update.
  bool needs_norm() const;

  /// The arithmetic of the norm: adds the replicas and squares. The result is in
  /// norm().
  work measure();
  mail::norm_part norm() const;

  /// What clipping by the network's norm multiplies this update's gradients with.
  void clip_by(double factor) { factor_ = factor; }

  /// The arithmetic of the update for one replica. The first one makes the new version,
  /// the others copy it.
  work apply(int replica);

  /// A replica has its new version; with the last one the update is over.
  void applied();

  /// Whom it waits for, in words; empty: nobody.
  std::string missing() const;

  // For the shard of stage 0: gathers all stages' parts. Returns the factor when all
  // are there.
  std::optional<double> gather(const mail::norm_part& part);

private:
  void add_replicas();
  bool has_all_parts() const;

  int stage_;
  double clip_;
  clip_scope scope_;
  std::shared_ptr<optimizer> state_; // null in a simulation
  std::optional<gradient_exchange> exchange_;
  /// The gradients of one bucket that replicas have completed.
  struct ready_bucket {
    int count = 0;
    std::vector<buffer> of; // a replica each
  };
  std::vector<ready_bucket> ready_;
  std::vector<std::int64_t> buckets_;                      // values of each
  std::vector<std::optional<mail::update_request>> parts_; // a replica each
  bool added_ = false;
  int made_by_ = -1; // the replica that has the new version first
  int applied_ = 0;
  double factor_ = 1;
  std::vector<double> squares_;
  std::vector<std::optional<mail::norm_part>> gathered_; // a stage each
};

struct optimizer_shard_state {
  std::string name = "optimizer";
  props shared;
  std::vector<device*> computers; ///< Of each replica's rank.
  std::unique_ptr<optimizer_core> core;
  optimizer_shard_peers peers;
  std::optional<port> to_others; ///< In virtual time.
  bool measuring = false;        ///< The work under way is that of the norm.
  bool norm_is_next = false;     ///< The next replica to go on is to measure it.
};

/// Holds the optimizer state of one stage of a data replica, and makes its versions.
optimizer_shard_actor::behavior_type
optimizer_shard(optimizer_shard_actor::stateful_pointer<optimizer_shard_state> self,
                props shared, position where, std::vector<device*> computers,
                optimizer_memory memory);

} // namespace troupe
