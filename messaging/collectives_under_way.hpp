#pragma once

#include "messaging/collective.hpp"

#include <map>
#include <optional>
#include <vector>

namespace troupe {

/// One member's part in the collectives of a group, several of which may be under way.
/// All members begin the same ones by the same instances, but not at once: what others
/// have sent for one that has not begun here is kept.
class collectives_under_way {
public:
  /// Begins a collective over an array of so many values, cut evenly. Returns what is
  /// to be sent now, as take() does. \param memory empty where nothing is computed
  std::vector<collective_message> begin(const collective_part& part,
                                        collective_memory memory);

  std::vector<collective_message> take(collective_message message);

  bool is_under_way(int instance) const { return running_.contains(instance); }
  bool none() const { return running_.empty(); }

  /// A collective that waits, and the member without whose message it cannot go on;
  /// absent if none waits.
  struct missing {
    int instance;
    int from;
  };
  std::optional<missing> waits_for() const;

private:
  void end_if_done(int instance);

  std::map<int, collective> running_; // by instance
  std::map<int, std::vector<collective_message>> early_;
};

} // namespace troupe
