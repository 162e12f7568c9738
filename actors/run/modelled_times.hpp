// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/record.hpp"
#include "schedules/time_layout.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace troupe {

/// The times that a run would have taken with one device a rank: the parts of its
/// actions, laid out by what they waited for. A part waits for messages between stages,
/// collectives of tensor shards, and layers that data replicas share out. An update
/// waits for all gradients, and where it clips or gathers for others. Latencies count
/// as nothing.
///
/// Measured actions are given as they become known, and forgotten when they have their
/// times.
class modelled_times {
public:
  /// Told of each sample with its times, for each rank in order.
  using moved = std::function<void(int rank, const measured_action&)>;

  /// \param plan outlives it \pre can_model(plan)
  modelled_times(const run_plan& plan, moved tell);

  /// Whether it is known what the parts of a run wait for: not where experts are
  /// spread, who may pass rows on at once, nor where updates follow one another as they
  /// come.
  static bool can_model(const run_plan& plan);

  /// The next part that a rank ran, also one of no length.
  void add(int rank, const measured_action& s);

  /// All parts of a run that has finished have been given.
  /// \throws std::logic_error if a part waits for one that has not been, or anything is
  /// remembered
  void check_end() const;

private:
  using part = time_layout::part;

  /// A stage, as far as its parts are known.
  struct stage_state {
    int layers = 0;           // buckets
    std::int64_t norm_of = 0; // the first of those whose gradients one norm covers
    int in_norm = 0;          // how many those are; 0: no update waits for a norm
    bool is_tied = false;     // it has an end of a tied matrix
    bool begun = false;       // an action other than an update,
    int layer = 0;            // of which it has done so many,
    bool on_layer = false;    // and another in part
    bool meets_shards = false;
    int shard_meetings = 0;
    int gathers = 0; // layers, in actions before
    int sums = 0;    // likewise
    bool begun_update = false;
  };

  stage_state& of(position where);
  std::int64_t place(position where) const;
  int directions() const;
  int size_of(int update) const;
  int update_of(const action& a) const;
  milestone shard_meeting(position where, int number) const;
  milestone layer_meeting(int kind, position where, int number) const;
  milestone sum_of(position where, int update) const;
  milestone coming_of(position where, int update) const;
  milestone given_by(position where, int update) const;
  std::vector<milestone> given_of(position where, int update) const;
  std::vector<milestone> sent_to(position where, int update) const;
  std::vector<milestone> gradients_of(position where, int update) const;
  void add_update(int rank, position where, const measured_action& s);
  void add_pass(int rank, position where, const measured_action& s);
  void place_part(int rank, const measured_action& s, part p);
  void place_moment(int rank, part p);

  const run_plan& plan_;
  moved tell_;
  std::vector<std::deque<std::optional<measured_action>>>
    todo_; // a part each; absent: unseen
  time_layout layout_;
  std::map<std::int64_t, stage_state> stages_; // by place
};

} // namespace troupe
