// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Something that parts of actions wait for. It is there when `givers` parts that give
/// it have ended, and forgotten when `takers` have waited for it.
struct milestone {
  int kind;            ///< What it is, as the caller counts.
  std::int64_t where;  ///< Whose it is.
  std::int64_t number; ///< Which of those.
  int givers = 1;
  int takers = 1;

  /// One of another size would be another milestone by mistake.
  bool operator==(const milestone&) const = default;
};

/// Moves parts of actions to the times at which they would have run had each rank a
/// device to itself: the order of a rank and the lengths of parts stay, and a part
/// starts as soon as its rank is free and all that it waits for is there. Parts may be
/// added as they become known; what has been laid out is forgotten.
class time_layout {
public:
  /// A part of a rank has its place; for each rank in order.
  using placed =
    std::function<void(std::size_t rank, std::int64_t start, std::int64_t end)>;

  time_layout(std::size_t ranks, placed tell);

  struct part {
    std::int64_t length;          ///< Nanoseconds.
    std::vector<milestone> after; ///< What it waits for.
    std::vector<milestone> then;  ///< What it gives.
  };

  /// The next part of a rank.
  void add(std::size_t rank, part next);

  /// A rank whose next part waits for what nobody has given; absent if all are placed.
  std::optional<std::size_t> waiting() const;

  /// Milestones that are not forgotten.
  std::size_t open() const { return open_.size(); }

private:
  struct rank_state {
    std::deque<part> todo;
    std::int64_t free_at = 0;
    bool waits = false; // for a milestone that knows of it
  };

  /// How far a milestone has come.
  struct progress {
    int given = 0;
    int taken = 0;
    std::int64_t time = 0;            // of the last that was given
    std::vector<std::size_t> waiting; // ranks
  };

  struct hash {
    std::size_t operator()(const milestone& m) const;
  };

  bool is_ready(std::size_t rank);
  void place(std::size_t rank);
  void advance(std::size_t rank);

  placed tell_;
  std::vector<rank_state> ranks_;
  std::unordered_map<milestone, progress, hash> open_;
  std::vector<std::size_t> woken_; // ranks that may go on
};

} // namespace troupe
