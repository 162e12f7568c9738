#include "schedules/prediction.hpp"

#include "schedules/order.hpp"

#include <map>
#include <memory>
#include <queue>
#include <utility>

namespace troupe {

namespace {

using nanoseconds = std::int64_t;

class foresight {
public:
  foresight(const schedule& sch, const shape& dims,
            const std::function<nanoseconds(const action&)>& cost,
            const std::function<nanoseconds(const action&)>& latency)
    : schedule_(sch),
      dims_(dims),
      cost_(cost),
      latency_(latency),
      ranks_(static_cast<std::size_t>(dims.stages)),
      result_(static_cast<std::size_t>(dims.stages)) {
    for (int r = 0; r < dims.stages; ++r)
      at(r).todo = make_order(sch, dims, r);
  }

  timeline run() {
    for (int replica = 0; replica < replicas_of(schedule_.where); ++replica)
      read_next_microbatch(replica);
    for (nanoseconds now = 0;;) {
      for (int r = 0; r < dims_.stages; ++r)
        grant(r, now);
      if (events_.empty())
        return std::move(result_);
      now = events_.top().when;
      while (!events_.empty() && events_.top().when == now) {
        const auto next = events_.top();
        events_.pop();
        if (next.arrives)
          arrive(next.what);
        else
          end(next.what, now);
      }
    }
  }

private:
  struct rank_state {
    std::unique_ptr<order> todo;
    waiting arrived;
    bool busy = false;
  };

  struct event {
    nanoseconds when;
    action what;
    bool arrives; // its input; else it ends

    bool operator<(const event& other) const { return when > other.when; }
  };

  rank_state& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  int rank_of_action(const action& a) const {
    return rank_of(schedule_.where, dims_, {a.replica, a.stage});
  }

  void read_next_microbatch(int replica) {
    const int k = read_[replica]++;
    if (k < microbatches_of_replica(schedule_, dims_))
      arrive(
        {op::forward, replica, 0, microbatch_of(schedule_.where, dims_, replica, k)});
  }

  // A forward that reads a version not made yet arrives when that is made.
  void arrive(const action& a) {
    if (a.what == op::forward) {
      const auto version = version_read(schedule_, dims_, a.stage, a.microbatch);
      if (version && *version > updates_[{a.replica, a.stage}]) {
        early_.push_back(a);
        return;
      }
    }
    at(rank_of_action(a)).arrived.add(a);
  }

  void grant(int rank, nanoseconds now) {
    auto& r = at(rank);
    while (!r.busy) {
      const auto next = r.todo->next(r.arrived);
      if (!next)
        return;
      if (next->what == op::update && waits_for_replicas(*next, now))
        continue;
      r.busy = true;
      const auto end = now + cost_(*next);
      result_[static_cast<std::size_t>(rank)].push_back({*next, now, end});
      events_.push({end, *next, false});
      if (next->what == op::forward && next->stage == 0)
        read_next_microbatch(next->replica);
    }
  }

  /// Whether an update that replicas share is granted for the first time. When all have
  /// come, it arrives once more for each.
  bool waits_for_replicas(const action& update, nanoseconds now) {
    const int replicas = replicas_of(schedule_.where);
    auto& came = meetings_[{update.stage, update.microbatch}];
    if (replicas == 1 || came == replicas)
      return false;
    if (++came == replicas)
      for (int r = 0; r < replicas; ++r)
        events_.push({now, {op::update, r, update.stage, update.microbatch}, true});
    return true;
  }

  void end(const action& a, nanoseconds now) {
    auto& r = at(rank_of_action(a));
    r.busy = false;
    r.todo->ended(a);
    if (a.what == op::forward && a.stage + 1 < dims_.stages)
      events_.push(
        {now + latency_(a), {op::forward, a.replica, a.stage + 1, a.microbatch}, true});
    else if (a.what == op::forward)
      arrive({op::backward, a.replica, a.stage, a.microbatch});
    else if ((a.what == op::backward || a.what == op::input_gradient) && a.stage > 0)
      events_.push({now + latency_(a),
                    {op::backward, a.replica, a.stage - 1, a.microbatch},
                    true});
    else if (a.what == op::update)
      make_version(a);
  }

  void make_version(const action& update) {
    ++updates_[{update.replica, update.stage}];
    for (const auto& forward : std::exchange(early_, {}))
      arrive(forward);
  }

  const schedule& schedule_;
  shape dims_;
  const std::function<nanoseconds(const action&)>& cost_;
  const std::function<nanoseconds(const action&)>& latency_;
  std::vector<rank_state> ranks_;
  timeline result_;
  std::priority_queue<event> events_;
  std::map<int, int> read_;                     // microbatches, by replica
  std::map<std::pair<int, int>, int> updates_;  // made, by replica and stage
  std::map<std::pair<int, int>, int> meetings_; // replicas that have come to an update
  std::vector<action> early_;
};

} // namespace

timeline predict(const schedule& sch, const shape& dims,
                 const std::function<nanoseconds(const action&)>& cost,
                 const std::function<nanoseconds(const action&)>& latency) {
  return foresight{sch, dims, cost, latency}.run();
}

} // namespace troupe
