// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/record.hpp"
#include "plan/run_plan.hpp"
#include "schedules/time_layout.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace troupe {

/// The times that a run would have taken with one device for each rank. A part of an
/// action starts when the rank's earlier parts have ended and all events that the part
/// waits for have occurred (time_layout.hpp). A part waits for messages between stages,
/// collectives of tensor shards, and layers that ZeRO divides among data replicas. An
/// update waits for all of the update's gradients. An update that clips by a norm or
/// gathers parameters also waits for other ranks. Latencies count as zero. A part takes
/// its measured time without `off_processor_time`, so that a busy machine stretches no
/// part.
///
/// Measured actions are added as they become known, and forgotten when times have been
/// assigned. One thread at a time uses an object.
class modelled_times {
public:
  /// Called inside add() for each measured part of an action, with modelled times; the
  /// parts of a rank come in order. Not called for parts of no length that other parts
  /// of the action follow.
  using moved = std::function<void(int rank, const measured_action&)>;

  /// \param plan outlives this object
  /// \pre can_model(plan)
  modelled_times(const run_plan& plan, moved report);

  /// True if the events that the parts of a run wait for are known. Events are unknown
  /// if experts are spread over ranks, as an expert without work answers immediately.
  /// Events are also unknown if data replicas do not all update together.
  static bool can_model(const run_plan& plan);

  /// Adds the next part that a rank ran; each rank's parts are added in the order in
  /// which they ran. Parts of no length must be added too.
  void add(int rank, const measured_action& s);

  /// Checks a finished run, all of whose parts have been added.
  /// \throws std::logic_error if a part waits for an event that did not occur, or an
  /// event occurred for which no part has waited
  void check_end() const;

private:
  using part = time_layout::part;

  /// The state of a stage after the parts that add() has received so far.
  struct stage_state {
    int layers = 0; // number of buckets
    // stage_index() of the first stage whose gradients one norm covers
    std::int64_t norm_of = 0;
    int in_norm = 0;       // stages that the norm covers; 0: no update waits for a norm
    bool is_tied = false;  // the stage has an end of a tied matrix
    bool started = false;  // an action other than an update has begun
    int layer = 0;         // layers that the action has finished
    bool on_layer = false; // the action has begun its next layer
    bool meets_shards = false;
    int shard_meetings = 0;
    int gathers = 0; // layers gathered in earlier actions
    int sums = 0;    // layers summed in earlier actions
    bool started_update = false;
  };

  stage_state& state_of(position where);
  std::int64_t stage_index(position where) const;
  int directions() const;
  int size_of(int update) const;
  int update_of(const action& a) const;
  dependency shard_meeting(position where, int number) const;
  dependency layer_meeting(int kind, position where, int number) const;
  dependency sum_of(position where, int update) const;
  dependency coming_of(position where, int update) const;
  dependency given_by(position where, int update) const;
  std::vector<dependency> given_of(position where, int update) const;
  std::vector<dependency> sent_to(position where, int update) const;
  std::vector<dependency> gradients_of(position where, int update) const;
  void add_update(int rank, position where, const measured_action& s);
  void add_pass(int rank, position where, const measured_action& s);
  void place_part(int rank, const measured_action& s, part p);
  void place_moment(int rank, part p);

  const run_plan& plan_;
  moved report_;
  std::vector<std::deque<std::optional<measured_action>>>
    todo_; // parts of each rank; absent: not reported
  time_layout layout_;
  std::map<std::int64_t, stage_state> stages_; // by stage_index()
};

} // namespace troupe
