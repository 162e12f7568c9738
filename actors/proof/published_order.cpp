#include "actors/proof/published_order.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace troupe::published {

namespace {

constexpr auto never = std::numeric_limits<std::int64_t>::max();

/// The inputs of one kind of one stage, and when they arrive.
class inbox {
public:
  void expect(std::int64_t when, int microbatch) {
    coming_.emplace(when, microbatch);
    when_.emplace(microbatch, when);
  }

  /// When the earliest input arrives that has not been used; `never` if none will.
  std::int64_t earliest() const {
    return coming_.empty() ? never : coming_.begin()->first;
  }

  /// The lowest microbatch that has arrived by then; -1 if none has.
  int lowest(std::int64_t now) const {
    int result = -1;
    for (const auto& [when, microbatch] : coming_) {
      if (when > now)
        break;
      result = result < 0 ? microbatch : std::min(result, microbatch);
    }
    return result;
  }

  void use(int microbatch) {
    if (const auto when = when_.extract(microbatch))
      coming_.erase({when.mapped(), microbatch});
  }

private:
  std::set<std::pair<std::int64_t, int>> coming_;
  std::map<int, std::int64_t> when_;
};

/// When each action of a stage ended.
class ends {
public:
  explicit ends(const std::vector<recorded_action>& row) {
    for (const auto& a : row)
      all_.emplace(std::pair{a.what, a.microbatch}, a.end);
  }

  /// `never` if it is not recorded.
  std::int64_t of(op what, int microbatch) const {
    const auto found = all_.find({what, microbatch});
    return found == all_.end() ? never : found->second;
  }

private:
  std::map<std::pair<op, int>, std::int64_t> all_;
};

std::string name(op what, int microbatch) {
  return std::string{letter_of(what)} + std::to_string(microbatch);
}

/// One stage, followed through its row.
class stage_rule {
public:
  stage_rule(const rule& by, const shape& dims,
             const std::vector<std::vector<recorded_action>>& stages,
             const std::vector<ends>& inputs, int stage, const recorded_times& times)
    : rule_(by),
      row_(stages[static_cast<std::size_t>(stage)]),
      inputs_(inputs),
      stage_(stage),
      last_(stage + 1 == dims.stages),
      left_(dims.microbatches * dims.steps),
      times_(times) {
    for (int n = 0; n < left_ && times_.latency; ++n)
      expect(n);
  }

  std::string first_breach() {
    for (const auto& a : row_) {
      auto wrong = a.what == op::update ? judge_update(a) : judge(a);
      if (!wrong.empty())
        return "stage " + std::to_string(stage_) + ": " + wrong;
      take(a);
    }
    if (left_ > 0 || summed_ > 0)
      return "stage " + std::to_string(stage_) + " ends with " + std::to_string(left_)
             + " backwards missing and gradients of " + std::to_string(summed_)
             + " microbatches not applied";
    return {};
  }

private:
  /// When what makes the input of an action ended; `never` if it is not recorded.
  std::int64_t input_end(op what, int n) const {
    const auto of = [this](int stage) -> const ends& {
      return inputs_[static_cast<std::size_t>(stage)];
    };
    if (what == op::forward)
      return stage_ == 0 ? 0 : of(stage_ - 1).of(op::forward, n);
    return last_ ? of(stage_).of(op::forward, n) : of(stage_ + 1).of(op::backward, n);
  }

  void expect(int n) {
    const bool from_below = stage_ > 0, from_above = !last_;
    if (const auto end = input_end(op::forward, n); from_below && end != never)
      forwards_.expect(end + times_.latency(op::forward, stage_ - 1, n), n);
    if (n == 0 && !from_below)
      forwards_.expect(0, 0);
    if (const auto end = input_end(op::backward, n); end != never)
      backwards_.expect(
        from_above ? end + times_.latency(op::backward, stage_ + 1, n) : end, n);
  }

  bool update_is_due() const {
    return summed_ > 0 && (summed_ == rule_.min_update_frequency || left_ == 0);
  }

  bool may_forward() const { return stage_ > 0 || in_flight_ < rule_.max_active_keys; }

  std::string judge_update(const recorded_action& a) const {
    if (!update_is_due())
      return "an update of " + std::to_string(summed_) + " gradients";
    if (a.gradients != summed_)
      return "an update says that it covers " + std::to_string(a.gradients)
             + " gradients, of " + std::to_string(summed_) + " that were summed";
    if (a.start < free_ || (times_.latency && !times_.updates_wait && a.start != free_))
      return "an update began at " + at(a.start) + ", and was due at " + at(free_);
    return {};
  }

  std::string judge(const recorded_action& a) const {
    const auto what = name(a.what, a.microbatch);
    if (a.what != op::forward && a.what != op::backward)
      return what + " is neither a forward nor a backward";
    if (update_is_due())
      return what + " began while " + std::to_string(summed_)
             + " gradients waited for their update";
    if (a.what == op::forward && !may_forward())
      return what + " began with " + std::to_string(in_flight_)
             + " microbatches in flight";
    return times_.latency ? judge_choice(a) : judge_order(a);
  }

  /// By arrivals.
  std::string judge_choice(const recorded_action& a) const {
    const auto from = may_forward() ? forwards_.earliest() : never;
    const auto now = std::max(free_, std::min(backwards_.earliest(), from));
    if (now == never)
      return name(a.what, a.microbatch) + " began, but nothing had arrived";
    const int b = backwards_.lowest(now);
    const auto chosen = b >= 0 ? std::pair{op::backward, b}
                               : std::pair{op::forward, forwards_.lowest(now)};
    if (chosen != std::pair{a.what, a.microbatch} || a.start != now)
      return name(a.what, a.microbatch) + " began at " + at(a.start)
             + "; by the rule it was " + name(chosen.first, chosen.second) + " at "
             + at(now);
    return {};
  }

  /// By what is certain without them.
  std::string judge_order(const recorded_action& a) const {
    const auto what = name(a.what, a.microbatch);
    const int next = a.what == op::forward ? forwarded_ : backwarded_;
    if (a.microbatch != next)
      return what + " came before " + name(a.what, next);
    if (last_ && a.what == op::forward && in_flight_ > 0)
      return what + " came before " + name(op::backward, backwarded_)
             + ", which had arrived";
    const auto input = input_end(a.what, a.microbatch);
    if (input == never)
      return what + " had no input";
    if (a.start < input || a.start < free_)
      return what + " began at " + at(a.start) + ", before its input had ended at "
             + at(input) + " or what ran before it at " + at(free_);
    return {};
  }

  void take(const recorded_action& a) {
    free_ = a.end;
    if (a.what == op::update) {
      summed_ = 0;
    } else if (a.what == op::forward) {
      ++forwarded_;
      ++in_flight_;
      forwards_.use(a.microbatch);
      if (stage_ == 0 && times_.latency && forwarded_ < left_ + backwarded_)
        forwards_.expect(a.start, forwarded_);
    } else {
      ++backwarded_;
      --in_flight_;
      --left_;
      ++summed_;
      backwards_.use(a.microbatch);
    }
  }

  static std::string at(std::int64_t when) { return std::to_string(when) + " ns"; }

  const rule& rule_;
  const std::vector<recorded_action>& row_;
  const std::vector<ends>& inputs_;
  int stage_;
  bool last_;
  int left_; // backwards to come
  const recorded_times& times_;
  inbox forwards_, backwards_;
  std::int64_t free_ = 0;
  int forwarded_ = 0, backwarded_ = 0;
  int in_flight_ = 0;
  int summed_ = 0;
};

} // namespace

std::string
first_breach_of_ampnet(const rule& by, const shape& dims,
                       const std::vector<std::vector<recorded_action>>& stages,
                       const recorded_times& times) {
  const std::vector<ends> inputs{stages.begin(), stages.end()};
  for (int s = 0; s < dims.stages; ++s)
    if (auto wrong = stage_rule{by, dims, stages, inputs, s, times}.first_breach();
        !wrong.empty())
      return wrong;
  return {};
}

} // namespace troupe::published
