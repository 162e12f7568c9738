#pragma once

#include "actors/messages.hpp"
#include "actors/props.hpp"
#include "models/optimizer.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The update of one stage and its replicas: gathers their gradients, adds them in
/// replica order, and writes the next version to each. Without an optimizer it only
/// keeps count.
class optimizer_core {
public:
  optimizer_core(const run_plan& plan, int stage, std::shared_ptr<optimizer> state);

  /// Takes a replica's part; true if it was the last one missing.
  bool take(const mail::update_request& part);

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

  /// A replica whose part is missing, or -1.
  int missing() const;

  // For the shard of stage 0: gathers all stages' parts. Returns the factor when all
  // are there.
  std::optional<double> gather(const mail::norm_part& part);

private:
  void add_replicas();

  int stage_;
  double clip_;
  clip_scope scope_;
  std::shared_ptr<optimizer> state_;                       // null in a simulation
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
  bool measuring = false; ///< The work under way is that of the norm.
};

/// Holds the optimizer state of one stage, and makes its versions.
optimizer_shard_actor::behavior_type
optimizer_shard(optimizer_shard_actor::stateful_pointer<optimizer_shard_state> self,
                props shared, int stage, std::vector<device*> computers,
                std::shared_ptr<optimizer> optimizer_of_stage);

} // namespace troupe
