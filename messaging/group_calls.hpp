// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/device.hpp"
#include "messaging/collective.hpp"
#include "messaging/gpu_script.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace troupe {

/// A member's end of a group of ranks on different GPUs, which exchange arrays
/// themselves.
struct gpu_group {
  communicator* by; ///< Exchanges,
  stream* on;       ///< on this stream, and nothing else is there.
  device* launches; ///< Runs works whose kernels are there.
};

/// One member's collectives in such a group. Before it launches one, it tells all
/// others which that is and how many came before, and hears the same of them: so
/// whoever is late is waited for by actors, which can say so, and not by GPUs; and
/// members that come to collectives in different orders are told of, and do not wait
/// for each other for ever.
class group_calls {
public:
  explicit group_calls(const gpu_group& of) : of_(of) {}

  /// Comes to a collective. Returns what the others are told: a call to each.
  /// \throws std::logic_error if another has come to it in another order
  std::vector<collective_message> begin(const collective_part& part,
                                        const collective_memory& memory);

  /// Another has come to it; early, or late. \throws std::logic_error likewise
  void take(const collective_message& call);

  /// What all have come to, in order, each once: work for the group's device.
  struct launch {
    int instance;
    collective_sum what;
  };
  std::optional<launch> next();

  /// A launch is over. \pre it was yielded
  void end(int instance) { under_way_.erase(instance); }

  bool is_under_way(int instance) const { return under_way_.contains(instance); }
  bool none() const { return under_way_.empty(); }

  /// Whether GPUs exchange just now.
  bool exchanges() const;

  /// An instance, and the first member that has not come to it; absent if none is
  /// waited for.
  struct missing {
    int instance;
    int from;
  };
  std::optional<missing> waits_for() const;

private:
  /// A collective that this member has come to.
  struct coming {
    int number;
    collective_memory memory;
    gpu_script script;
    std::set<int> missing; // members
  };

  bool is_launched(const coming& own) const { return own.number < launched_; }

  gpu_group of_;
  int begun_ = 0, launched_ = 0;
  std::map<int, coming> under_way_;                      // by instance
  std::map<int, std::vector<collective_message>> early_; // likewise
};

} // namespace troupe
