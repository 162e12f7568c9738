#pragma once

#include "actors/plan.hpp"
#include "kernels/pool.hpp"
#include "messaging/collective.hpp"
#include "models/layer.hpp"

#include <optional>
#include <vector>

namespace troupe {

/// A tensor shard's part in what all shards of its stage do together, one collective
/// after another: all come to the same ones in the same order, but not at once.
class shard_group {
public:
  /// \param payloads null where nothing is computed
  shard_group(const run_plan& plan, position where, pool* payloads);

  /// Begins the next collective. \pre done() Returns what is to be sent now.
  std::vector<collective_message> begin(const shard_collective<float>& what);

  std::vector<collective_message> take(collective_message message);

  /// Whether nothing is under way.
  bool done() const { return !running_; }

  /// The shard without whose message it cannot go on; absent if it need not.
  std::optional<int> waits_for() const;

  /// What copies under way need for such collectives.
  static payload_bound copies_of(const run_plan& plan, position where,
                                 const shard_collective<float>& what);

private:
  std::vector<collective_message> note(std::vector<collective_message> out);

  int rank_;
  int ranks_;
  pool* payloads_;
  int begun_ = 0;
  std::optional<collective> running_;
  std::vector<collective_message> early_;
};

} // namespace troupe
