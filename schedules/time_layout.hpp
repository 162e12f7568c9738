// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

// The layout of a finished real run in time, as if each rank had a device to itself.

namespace troupe {

/// A dependency between parts of actions: an event that parts wait for. The event
/// occurs when `producers` parts have ended, and is forgotten when `consumers` parts
/// that waited have started.
struct dependency {
  int kind;            ///< The kind of event, numbered by the caller.
  std::int64_t where;  ///< The owner of the event, numbered by the caller.
  std::int64_t number; ///< Index among the events of one kind and owner.
  int producers = 1;
  int consumers = 1;

  /// Compares the counts, too. All dependencies on one event must have equal counts, or
  /// the layout treats the dependencies as different events.
  bool operator==(const dependency&) const = default;
};

/// Moves parts of actions to the times at which each rank would have run the parts on a
/// separate device. The order of a rank and the lengths of parts stay. A part starts as
/// soon as the rank is free and all awaited events have occurred. A caller may add a
/// part as soon as the part is known; parts that have been laid out are forgotten. For
/// one thread at a time.
class time_layout {
public:
  /// Called by add() for each part that is laid out, in order for each rank; times are
  /// nanoseconds from 0.
  using placed =
    std::function<void(std::size_t rank, std::int64_t start, std::int64_t end)>;

  time_layout(std::size_t ranks, placed on_placed);

  struct part {
    std::int64_t length;            ///< Nanoseconds.
    std::vector<dependency> inputs; ///< Events that the part waits for.
    std::vector<dependency>
      outputs; ///< Events that the end of the part contributes to.
  };

  /// Adds the next part of a rank, and lays out all parts that can start.
  void add(std::size_t rank, part next);

  /// The lowest rank whose next part waits for an event that has not occurred; absent
  /// if all parts are laid out.
  std::optional<std::size_t> waiting() const;

  /// Number of events that are not forgotten.
  std::size_t open() const { return open_.size(); }

private:
  struct rank_state {
    std::deque<part> todo;
    std::int64_t free_at = 0;
    bool waits = false; // listed in progress::waiting of an event
  };

  /// Progress of an event: the number of parts that have contributed, and of waiting
  /// parts that have started.
  struct progress {
    int produced = 0;
    int consumed = 0;
    std::int64_t time = 0;            // the latest end of a part that contributed
    std::vector<std::size_t> waiting; // ranks
  };

  struct hash {
    std::size_t operator()(const dependency& m) const;
  };

  bool is_ready(std::size_t rank);
  void place_next(std::size_t rank);
  void advance(std::size_t rank);

  placed on_placed_;
  std::vector<rank_state> ranks_;
  std::unordered_map<dependency, progress, hash> open_;
  std::vector<std::size_t> woken_; // ranks that may continue
};

} // namespace troupe
