#pragma once

#include "actors/plan/run_plan.hpp"
#include "kernels/pool.hpp"
#include "messaging/collectives_under_way.hpp"
#include "models/layer.hpp"

#include <optional>
#include <utility>
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

  std::vector<collective_message> take(collective_message message) {
    return under_way_.take(std::move(message));
  }

  /// Whether nothing is under way.
  bool done() const { return under_way_.none(); }

  /// The shard without whose message it cannot go on; absent if it need not.
  std::optional<int> waits_for() const {
    const auto missing = under_way_.waits_for();
    return missing ? std::optional{missing->from} : std::nullopt;
  }

  /// What copies under way need for such collectives.
  static payload_bound copies_of(const run_plan& plan, position where,
                                 const shard_collective<float>& what);

private:
  int rank_;
  int ranks_;
  pool* payloads_;
  int begun_ = 0;
  collectives_under_way under_way_;
};

} // namespace troupe
