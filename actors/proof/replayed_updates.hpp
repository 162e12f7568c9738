// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/replayed_exchange.hpp"
#include "actors/proof/replayed_stage.hpp"
#include "models/plain_loop.hpp"

#include <deque>
#include <vector>

namespace troupe {

/// The updates of a replay: who must have come to one before it is made, what it sums,
/// and the versions that it makes.
class replayed_updates {
public:
  /// \param stages of pipeline 0, then of 1; outlive it
  /// \param accesses to parameters that data replicas update one by one
  /// \param on what common updates are computed on \param witness may be null
  replayed_updates(const run_plan& plan, std::vector<replayed_stage>& stages,
                   const shared_history& accesses, stream& on, update_witness* witness);

  /// Makes the update that a stage stands at, for all who have a part in it; false if
  /// they have not all come to it.
  /// \throws std::logic_error if it cannot have happened
  bool make(replayed_stage& stage);

  /// What is left that nobody does; empty if all is well.
  std::string trouble() const;

  /// The parameters of a stage in the end.
  const bucket_values& last(int stage) const;

private:
  replayed_stage& at(int pipeline, int stage) const;
  int directions() const { return plan_.directions(); }
  bool are_common() const { return exchanges_.empty(); }

  std::vector<replayed_stage*> meeting(const replayed_stage& stage) const;
  bool make_alone(replayed_stage& stage);
  void push(const std::vector<replayed_stage*>& all);
  void add_replicas(int stage);
  void add_microbatches(int stage);
  void add_directions(int stage);
  bool are_tied(int stage, int other) const;
  void add_tied();
  void add_squares(const replayed_stage& stage, double& to) const;
  double clip(double squares, std::int64_t samples) const;
  void make_version(int stage, int version, std::int64_t samples, double factor);

  const run_plan& plan_;
  std::vector<replayed_stage>& stages_;
  stream& on_;
  update_witness* witness_;
  memory_account account_;
  /// Where a copy of a tied matrix stands.
  struct copy_of_tied {
    int stage;
    std::size_t bucket;
    std::int64_t offset;
  };
  std::vector<copy_of_tied> tied_; // the head's, then the embedding's; empty if untied
  std::vector<gradient_buckets> buckets_;   // a stage each
  std::vector<optimizer> optimizers_;       // likewise
  std::deque<replayed_exchange> exchanges_; // likewise, if updates are not common
};

} // namespace troupe
