// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/published_order.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace troupe::published {

namespace {

constexpr auto never = std::numeric_limits<std::int64_t>::max();

/// The inputs of one stage for one kind of action, and the arrival time of each in
/// nanoseconds.
class arrivals {
public:
  /// \param when arrival time
  /// \param doubtful whether the input arrives at the instant at which its action
  /// started: a choice at that instant may precede the arrival
  void expect(int microbatch, std::int64_t when, bool doubtful) {
    by_time_.emplace(when, microbatch);
    by_microbatch_.emplace(microbatch, arrival{when, doubtful});
  }

  /// The arrival time of the earliest unused input; `never` if none will arrive.
  std::int64_t earliest() const {
    return by_time_.empty() ? never : by_time_.begin()->first;
  }

  bool has(int microbatch, std::int64_t now) const {
    const auto entry = by_microbatch_.find(microbatch);
    return entry != by_microbatch_.end() && entry->second.when <= now;
  }

  /// The lowest unused microbatch that has certainly arrived at time `now`; -1 if none
  /// has.
  int lowest(std::int64_t now) const {
    int result = -1;
    for (const auto& [when, microbatch] : by_time_) {
      if (when > now)
        break;
      if (when < now || !by_microbatch_.at(microbatch).doubtful)
        result = result < 0 ? microbatch : std::min(result, microbatch);
    }
    return result;
  }

  void use(int microbatch) {
    if (const auto entry = by_microbatch_.extract(microbatch))
      by_time_.erase({entry.mapped().when, microbatch});
  }

private:
  struct arrival {
    std::int64_t when;
    bool doubtful;
  };

  std::set<std::pair<std::int64_t, int>> by_time_;
  std::map<int, arrival> by_microbatch_;
};

/// The recorded actions of a stage, found by operation and microbatch.
class actions_of_stage {
public:
  explicit actions_of_stage(const std::vector<recorded_action>& row) {
    for (const auto& a : row)
      actions_.emplace(std::pair{a.operation, a.microbatch}, &a);
  }

  /// Returns null if the action is not recorded.
  const recorded_action* find(op operation, int microbatch) const {
    const auto entry = actions_.find({operation, microbatch});
    return entry == actions_.end() ? nullptr : entry->second;
  }

private:
  std::map<std::pair<op, int>, const recorded_action*> actions_;
};

std::string name(op operation, int microbatch) {
  return std::string{letter_of(operation)} + std::to_string(microbatch);
}

/// Checks the recorded actions of one stage, in order, against AMPNet's rule.
class stage_rule {
public:
  stage_rule(const rule& paper_rule, const shape& dims,
             const std::vector<std::vector<recorded_action>>& stages,
             const std::vector<actions_of_stage>& makers, int stage,
             const recorded_times& times)
    : rule_(paper_rule),
      row_(stages[static_cast<std::size_t>(stage)]),
      makers_(makers),
      stage_(stage),
      last_(stage + 1 == dims.stages),
      left_(dims.microbatches * dims.steps),
      times_(times) {
    if (!times_.latency)
      return;
    for (int n = 0; n < left_; ++n) {
      expect(op::forward, n);
      expect(op::backward, n);
    }
    if (stage == 0)
      forwards_.expect(0, 0, false);
  }

  std::string first_breach() {
    for (const auto& a : row_) {
      auto breach = a.operation == op::update ? judge_update(a) : judge(a);
      if (!breach.empty())
        return "stage " + std::to_string(stage_) + ": " + breach;
      apply(a);
    }
    if (left_ > 0 || summed_ > 0)
      return "stage " + std::to_string(stage_) + " ends with " + std::to_string(left_)
             + " backwards missing and gradients of " + std::to_string(summed_)
             + " microbatches not applied";
    return {};
  }

private:
  /// Returns the action whose output is the input of an action; null if the data source
  /// makes the input, or the record lacks the action.
  const recorded_action* maker_of(op operation, int n) const {
    const int from = operation == op::forward ? stage_ - 1
                     : last_                  ? stage_
                                              : stage_ + 1;
    if (from < 0)
      return nullptr;
    const bool by_forward = operation == op::forward || last_;
    return makers_[static_cast<std::size_t>(from)].find(
      by_forward ? op::forward : op::backward, n);
  }

  /// Adds the input of an action that a neighbour sends. The stage's own outputs are
  /// added in apply(), when the stage runs the action.
  void expect(op operation, int n) {
    const auto* const maker = maker_of(operation, n);
    if (maker == nullptr || (operation == op::backward && last_))
      return;
    const int from = operation == op::forward ? stage_ - 1 : stage_ + 1;
    const auto when = maker->end + times_.latency(operation, from, n);
    (operation == op::forward ? forwards_ : backwards_)
      .expect(n, when, when == maker->start);
  }

  bool update_is_due() const {
    return summed_ > 0 && (summed_ == rule_.min_update_frequency || left_ == 0);
  }

  bool may_forward() const { return stage_ > 0 || in_flight_ < rule_.max_active_keys; }

  std::string judge_update(const recorded_action& a) const {
    if (!update_is_due())
      return "an update began with only " + std::to_string(summed_) + " gradients";
    if (a.gradients != summed_)
      return "an update reports " + std::to_string(a.gradients) + " gradients, but "
             + std::to_string(summed_) + " were summed";
    if (a.start < free_ || (times_.latency && !times_.updates_wait && a.start != free_))
      return "an update began at " + time_text(a.start) + ", and was due at "
             + time_text(free_);
    return {};
  }

  std::string judge(const recorded_action& a) const {
    const auto action_name = name(a.operation, a.microbatch);
    if (a.operation != op::forward && a.operation != op::backward)
      return action_name + " is neither a forward nor a backward";
    if (update_is_due())
      return action_name + " began while " + std::to_string(summed_)
             + " gradients waited for their update";
    if (a.operation == op::forward && !may_forward())
      return action_name + " began with " + std::to_string(in_flight_)
             + " microbatches in flight";
    return times_.latency ? judge_choice(a) : judge_order(a);
  }

  /// Checks a choice and its start time, from arrival times.
  std::string judge_choice(const recorded_action& a) const {
    const auto now =
      std::max(free_, std::min(backwards_.earliest(),
                               may_forward() ? forwards_.earliest() : never));
    if (now == never)
      return name(a.operation, a.microbatch) + " began, but no input had arrived";
    const int f = forwards_.lowest(now), b = backwards_.lowest(now);
    const bool forward = a.operation == op::forward;
    const auto& from = forward ? forwards_ : backwards_;
    const int lower = forward ? f : b;
    const bool beaten = (forward && b >= 0) || (lower >= 0 && lower < a.microbatch);
    if (a.start == now && from.has(a.microbatch, now) && !beaten)
      return {};
    return name(a.operation, a.microbatch) + " began at " + time_text(a.start)
           + "; by the rule it was "
           + (b >= 0                    ? name(op::backward, b)
              : f >= 0 && may_forward() ? name(op::forward, f)
                                        : "another")
           + " at " + time_text(now);
  }

  /// Checks the facts that are certain without arrival times.
  std::string judge_order(const recorded_action& a) const {
    const auto action_name = name(a.operation, a.microbatch);
    const int next = a.operation == op::forward ? forwarded_ : backwarded_;
    if (a.microbatch != next)
      return action_name + " ran before " + name(a.operation, next);
    if (last_ && a.operation == op::forward && in_flight_ > 0)
      return action_name + " ran before " + name(op::backward, backwarded_)
             + ", which had arrived";
    const auto* const maker = maker_of(a.operation, a.microbatch);
    if (maker == nullptr && !(stage_ == 0 && a.operation == op::forward))
      return action_name + " had no input";
    const auto input = maker == nullptr ? 0 : maker->end;
    if (a.start + times_.doubt < input || a.start < free_)
      return action_name + " began at " + time_text(a.start)
             + ", before its input had ended at " + time_text(input)
             + " or the previous action at " + time_text(free_);
    return {};
  }

  void apply(const recorded_action& a) {
    free_ = a.end;
    if (a.operation == op::update) {
      summed_ = 0;
    } else if (a.operation == op::forward) {
      ++forwarded_;
      ++in_flight_;
      forwards_.use(a.microbatch);
      if (stage_ == 0 && times_.latency && forwarded_ < left_ + backwarded_)
        forwards_.expect(forwarded_, a.start, false);
      if (last_ && times_.latency)
        backwards_.expect(a.microbatch, a.end, false);
    } else {
      ++backwarded_;
      --in_flight_;
      --left_;
      ++summed_;
      backwards_.use(a.microbatch);
    }
  }

  static std::string time_text(std::int64_t when) {
    return std::to_string(when) + " ns";
  }

  const rule& rule_;
  const std::vector<recorded_action>& row_;
  const std::vector<actions_of_stage>& makers_;
  int stage_;
  bool last_;
  int left_; // backwards not yet seen
  const recorded_times& times_;
  arrivals forwards_, backwards_;
  std::int64_t free_ = 0;
  int forwarded_ = 0, backwarded_ = 0;
  int in_flight_ = 0;
  int summed_ = 0;
};

} // namespace

std::string
first_breach_of_ampnet(const rule& paper_rule, const shape& dims,
                       const std::vector<std::vector<recorded_action>>& stages,
                       const recorded_times& times) {
  const std::vector<actions_of_stage> makers{stages.begin(), stages.end()};
  for (int s = 0; s < dims.stages; ++s)
    if (auto breach =
          stage_rule{paper_rule, dims, stages, makers, s, times}.first_breach();
        !breach.empty())
      return breach;
  return {};
}

} // namespace troupe::published
