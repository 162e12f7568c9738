// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/replayed_exchange.hpp"
#include "actors/proof/replayed_stage.hpp"
#include "models/plain_loop.hpp"

#include <deque>
#include <vector>

namespace troupe {

/// The updates of a replay. An update waits until all stages that take part have
/// reached the update; then this class sums the gradients and makes the next versions.
/// Updates are common to all data replicas, or each of one data replica (servers,
/// Hogwild).
class replayed_updates {
public:
  /// \param plan,stages,compute_stream,witness outlive this object
  /// \param stages first all stages of pipeline 0, then of pipeline 1, and so on
  /// \param accesses order of accesses to parameters that data replicas update one by
  /// one; may be empty if all data replicas update together
  /// \param compute_stream stream for norms, and for updates that all data replicas
  /// make together
  /// \param witness called at each update that all data replicas make together; may be
  /// null
  replayed_updates(const run_plan& plan, std::vector<replayed_stage>& stages,
                   const shared_history& accesses, stream& compute_stream,
                   update_witness* witness);

  /// Makes the update that is the stage's current action. A common update is made for
  /// all stages that take part. An update of one data replica is made for this stage,
  /// in all directions of the replica. Returns false if a stage that takes part has not
  /// reached the update, or if recorded accesses of other data replicas come first.
  /// \pre the stage's current action is an update
  /// \throws std::logic_error if no run can have made the update
  bool make(replayed_stage& stage);

  /// Returns a sentence about recorded accesses that no update of the replay has made;
  /// empty if all are made.
  std::string error() const;

  /// The newest parameters of a stage: after the replay, the final parameters. Valid
  /// until the next make().
  const bucket_values& last(int stage) const;

private:
  replayed_stage& stage_at(int pipeline, int stage) const;
  int directions() const { return plan_.directions(); }
  bool are_common() const { return exchanges_.empty(); }

  std::vector<replayed_stage*> participants_of(const replayed_stage& stage) const;
  bool make_alone(replayed_stage& stage);
  void push(const std::vector<replayed_stage*>& participants);
  void add_replicas(int stage);
  void add_microbatches(int stage);
  void add_directions(int stage);
  bool are_tied(int stage, int other_stage) const;
  void add_tied();
  void add_squares(const replayed_stage& stage, double& to) const;
  double clip(double squares, std::int64_t samples) const;
  void make_version(int stage, int version, std::int64_t samples, double factor);

  const run_plan& plan_;
  std::vector<replayed_stage>& stages_;
  stream& stream_;
  update_witness* witness_;
  memory_account account_;
  /// The position of a copy of a tied matrix.
  struct copy_of_tied {
    int stage;
    std::size_t bucket;
    std::int64_t offset;
  };
  std::vector<copy_of_tied> tied_; // the head's, then the embedding's; empty if untied
  std::vector<gradient_buckets> buckets_;   // by stage
  std::vector<optimizer> optimizers_;       // by stage
  std::deque<replayed_exchange> exchanges_; // by stage; empty if updates are common
};

} // namespace troupe
