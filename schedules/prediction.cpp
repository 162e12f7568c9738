// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/prediction.hpp"

#include "schedules/order.hpp"

#include <map>
#include <memory>
#include <queue>
#include <set>
#include <utility>

namespace troupe {

namespace {

using nanoseconds = std::int64_t;

class event_simulation {
public:
  event_simulation(const schedule& sch, const shape& dims,
                   const std::function<nanoseconds(const action&)>& cost,
                   const std::function<nanoseconds(const action&)>& latency)
    : schedule_(sch),
      dims_(dims),
      cost_(cost),
      latency_(latency),
      ranks_(static_cast<std::size_t>(ranks_of(sch.where, dims))),
      result_(ranks_.size()) {
    for (int r = 0; r < ranks(); ++r)
      state_of(r).todo = make_order(sch, dims, r);
  }

  timeline run() {
    for (int direction = 0; direction < directions_of(schedule_.where); ++direction)
      read_next_microbatch(direction);
    for (int r = 0; r < ranks(); ++r)
      grant(r, 0);
    while (!events_.empty()) {
      const auto now = events_.top().when;
      while (!events_.empty() && events_.top().when == now) {
        const auto next = events_.top();
        events_.pop();
        handle_event(next, now);
        if (const int rank = rank_of_action(next.event_action); !has_choice(rank))
          grant(rank, now);
      }
      for (int r = 0; r < ranks(); ++r)
        if (has_choice(r))
          grant(r, now);
    }
    return std::move(result_);
  }

private:
  struct rank_state {
    std::unique_ptr<order> todo;
    waiting arrived;
    bool busy = false;
    int waiting_updates = 0;
  };

  enum class event_kind { ends, input_arrives, gradients_arrive };

  struct event {
    nanoseconds when;
    action event_action;
    event_kind kind;

    bool operator<(const event& rhs) const { return when > rhs.when; }
  };

  void handle_event(const event& next, nanoseconds now) {
    if (next.kind == event_kind::gradients_arrive)
      add_gradients(next.event_action, now);
    else if (next.kind == event_kind::input_arrives)
      arrive(next.event_action);
    else
      end(next.event_action, now);
  }

  /// Whether the choice of a rank depends on all arrivals of an instant.
  bool has_choice(int rank) {
    return schedule_.local_rule() || state_of(rank).waiting_updates > 0;
  }

  int ranks() const { return static_cast<int>(ranks_.size()); }

  rank_state& state_of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  int rank_of_action(const action& a) const {
    return rank_of(schedule_.where, dims_, {a.direction, a.stage});
  }

  /// Nanoseconds that the result of `a` takes to another stage or direction; 0 within a
  /// rank.
  nanoseconds delay(const action& a, hosted_stage to) const {
    return rank_of(schedule_.where, dims_, to) == rank_of_action(a) ? 0 : latency_(a);
  }

  void read_next_microbatch(int direction) {
    const int k = read_[direction]++;
    if (k < microbatches_of_direction(schedule_, dims_))
      arrive({op::forward, direction, 0,
              microbatch_of(schedule_.where, dims_, direction, k)});
  }

  // A forward that reads a version not made yet arrives when that version is made.
  void arrive(const action& a) {
    if (a.op == op::forward) {
      const auto version = version_read(schedule_, dims_, a.stage, a.microbatch);
      if (version && *version > updates_[{a.direction, a.stage}]) {
        early_.push_back(a);
        return;
      }
    }
    state_of(rank_of_action(a)).arrived.add(a);
  }

  void grant(int rank, nanoseconds now) {
    auto& r = state_of(rank);
    while (!r.busy) {
      const auto next = r.todo->next(r.arrived);
      if (!next)
        return;
      if (next->op == op::update && waits_for_directions(*next, now)) {
        ++r.waiting_updates;
        continue;
      }
      if (next->op == op::update && is_shared())
        --r.waiting_updates;
      r.busy = true;
      const auto end = now + cost_of(*next, *r.todo);
      result_[static_cast<std::size_t>(rank)].push_back({*next, now, end});
      events_.push({end, *next, event_kind::ends});
      if (next->op == op::forward && next->stage == 0)
        read_next_microbatch(next->direction);
    }
  }

  /// Nanoseconds of an action. The first of a pair takes the time of both, so both
  /// outputs exist at the same time.
  nanoseconds cost_of(const action& a, order& rank_order) const {
    if (a.pair == in_pair::second)
      return 0;
    return cost_(a) + (a.pair == in_pair::first ? cost_(*rank_order.awaited()) : 0);
  }

  /// The progress of an update that directions share.
  struct shared_update {
    int granted = 0;   // directions that have granted the update
    int gradients = 0; // directions whose gradients have reached the first
  };

  bool is_shared() const { return directions_of(schedule_.where) > 1; }

  /// Nanoseconds of a message between a direction and the first direction.
  nanoseconds shared_latency(const action& update) const {
    return delay(update, {0, update.stage});
  }

  /// Whether an update that directions share is granted for the first time, and must
  /// wait for other directions.
  bool waits_for_directions(const action& update, nanoseconds now) {
    if (!is_shared() || !granted_.insert(update).second)
      return false;
    ++shared_updates_[{update.stage, update.microbatch}].granted;
    if (!schedule_.eager)
      events_.push(
        {now + shared_latency(update), update, event_kind::gradients_arrive});
    else
      resume_if_complete(update, now);
    return true;
  }

  void add_gradients(const action& update, nanoseconds now) {
    ++shared_updates_[{update.stage, update.microbatch}].gradients;
    resume_if_complete(update, now);
  }

  /// Once all directions have granted the update and sent gradients, the update arrives
  /// again for the first direction.
  void resume_if_complete(const action& update, nanoseconds now) {
    const int directions = directions_of(schedule_.where);
    const auto& progress = shared_updates_[{update.stage, update.microbatch}];
    if (progress.granted == directions && progress.gradients == directions)
      events_.push({now,
                    {op::update, 0, update.stage, update.microbatch},
                    event_kind::input_arrives});
  }

  /// Sends the gradients of a batch after the last backward, if the schedule is eager.
  void send_gradients(const action& backward, nanoseconds now) {
    const int share = dims_.microbatches / directions_of(schedule_.where);
    auto& ended = backwards_[{backward.direction, backward.stage}];
    if (++ended % share != 0 || !is_shared() || !schedule_.eager)
      return;
    const int batch = backward.microbatch / dims_.microbatches;
    const action update{op::update, backward.direction, backward.stage,
                        (batch + 1) * dims_.microbatches - 1};
    events_.push({now + shared_latency(update), update, event_kind::gradients_arrive});
  }

  void end(const action& a, nanoseconds now) {
    auto& r = state_of(rank_of_action(a));
    r.busy = false;
    r.todo->ended(a);
    if (a.op == op::forward && a.stage + 1 < dims_.stages)
      events_.push({now + delay(a, {a.direction, a.stage + 1}),
                    {op::forward, a.direction, a.stage + 1, a.microbatch},
                    event_kind::input_arrives});
    else if (a.op == op::forward)
      arrive({op::backward, a.direction, a.stage, a.microbatch});
    else if (goes_back(a.op) && a.stage > 0)
      events_.push({now + delay(a, {a.direction, a.stage - 1}),
                    {op::backward, a.direction, a.stage - 1, a.microbatch},
                    event_kind::input_arrives});
    else if (a.op == op::update)
      make_version(a, now);
    if (adds_gradient(a.op))
      send_gradients(a, now);
  }

  /// The first direction sends the new version to the others.
  void make_version(const action& update, nanoseconds now) {
    ++updates_[{update.direction, update.stage}];
    for (const auto& forward : std::exchange(early_, {}))
      arrive(forward);
    for (int r = 1; r < directions_of(schedule_.where) && update.direction == 0; ++r) {
      const action copy{op::update, r, update.stage, update.microbatch};
      events_.push({now + shared_latency(copy), copy, event_kind::input_arrives});
    }
  }

  const schedule& schedule_;
  shape dims_;
  const std::function<nanoseconds(const action&)>& cost_;
  const std::function<nanoseconds(const action&)>& latency_;
  std::vector<rank_state> ranks_;
  timeline result_;
  std::priority_queue<event> events_;
  std::map<int, int> read_;                      // microbatches, by direction
  std::map<std::pair<int, int>, int> updates_;   // made, by direction and stage
  std::map<std::pair<int, int>, int> backwards_; // ended, by direction and stage
  std::set<action> granted_;                     // updates that directions share
  std::map<std::pair<int, int>, shared_update>
    shared_updates_; // by stage and microbatch
  std::vector<action> early_;
};

} // namespace

timeline predict(const schedule& sch, const shape& dims,
                 const std::function<nanoseconds(const action&)>& cost,
                 const std::function<nanoseconds(const action&)>& latency) {
  return event_simulation{sch, dims, cost, latency}.run();
}

} // namespace troupe
