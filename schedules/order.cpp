// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/order.hpp"

#include "schedules/program.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

namespace troupe {

namespace {

constexpr int no_limit = std::numeric_limits<int>::max();

bool may(may_begin permitted, const action& a) {
  return permitted == may_begin::anything
         || (permitted == may_begin::updates) == (a.op == op::update);
}

/// Follows a program. An update that waits for other ranks returns as an arrival. The
/// returned update goes before all actions of the program except updates, because other
/// ranks may wait for this rank's part in an update. Backwards of the same stage wait
/// for the end of an update, because gradients are summed where the update still reads.
/// Forwards do not wait, unless a forward reads the new version.
class program_order : public order {
public:
  program_order(const schedule& sch, const shape& dims, int rank)
    : program_(sch, dims, rank),
      recomputes_ahead_(sch.recomputes == recomputation::ahead),
      batch_(dims.microbatches),
      update_size_(update_size(sch, dims)) {
    for (const auto& where : hosted_by(sch.where, dims, rank))
      stages_.push_back({where});
  }

  std::optional<action> next(waiting& arrived, may_begin permitted) override {
    const auto* front = program_.front();
    const bool updates = front != nullptr && front->op == op::update && !at_stop(*front)
                         && ready(*front, arrived);
    if (const auto resumed = arrived.lowest(op::update);
        resumed && !updates && permitted != may_begin::passes) {
      arrived.remove(*resumed);
      return resumed;
    }
    if (front == nullptr || at_stop(*front) || !may(permitted, *front)
        || !ready(*front, arrived))
      return {};
    const auto result = *front;
    program_.pop();
    ++open_;
    if (result.op == op::update) {
      ++updates_of(result).started;
      updates_.push_back(result);
    }
    return result;
  }

  void ended(const action& a) override {
    --open_;
    if (a.op != op::update)
      return;
    ++updates_of(a).ended;
    std::erase(updates_, a);
  }

  bool finished() override {
    if (stops_ && std::ranges::all_of(stages_, [this](const stage_updates& s) {
          return s.ended >= limit_;
        }))
      return true; // actions beyond the limit do not matter
    return open_ == 0 && program_.front() == nullptr;
  }

  std::optional<action> awaited() override {
    const auto* front = program_.front();
    return front != nullptr ? std::optional{*front} : std::nullopt;
  }

  int freeze() override {
    limit_ = std::ranges::max(stages_, {}, &stage_updates::started).started;
    return limit_;
  }

  void stop_after(int updates) override {
    limit_ = updates;
    stops_ = true;
  }

  void pause_after(int batches) override {
    pause_ = static_cast<int>(std::min<std::int64_t>(
      std::int64_t{batches} * batch_ / update_size_, no_limit - 1));
  }

  bool paused() override {
    return pause_ != no_limit && program_.front() != nullptr
           && std::ranges::all_of(
             stages_, [this](const stage_updates& s) { return s.ended >= pause_; });
  }

private:
  struct stage_updates {
    hosted_stage where;
    int started = 0;
    int ended = 0;
  };

  stage_updates& updates_of(const action& a) {
    return *std::ranges::find(stages_, hosted_stage{a.direction, a.stage},
                              &stage_updates::where);
  }

  /// Whether an action that has not started lies beyond the last permitted update.
  bool at_stop(const action& a) {
    const int most = std::min(limit_, pause_);
    return most != no_limit
           && ((a.op == op::update && updates_of(a).started >= most)
               || std::ranges::all_of(
                 stages_, [&](const stage_updates& s) { return s.started >= most; }));
  }

  bool ready(const action& a, waiting& arrived) const {
    if (a.op != op::forward && updating(a))
      return false;
    if (a.op == op::update || a.op == op::weight_gradient)
      return true; // inputs come from earlier actions of this rank
    if (a.op == op::recompute)
      return recomputes_ahead_ || arrived.has(input_of(a));
    if (a.pair == in_pair::first && !arrived.has(input_of(*program_.second())))
      return false;
    return arrived.remove(input_of(a));
  }

  /// The arrival that an action waits for. A gradient arrives as a backward, whichever
  /// action needs the gradient first.
  static action input_of(action a) {
    if (a.op == op::input_gradient || a.op == op::recompute)
      a.op = op::backward;
    return a;
  }

  bool updating(const action& a) const {
    return std::ranges::any_of(updates_, [&](const action& u) {
      return u.stage == a.stage && u.direction == a.direction;
    });
  }

  program program_;
  int open_ = 0;                      // granted and not yet ended
  std::vector<action> updates_;       // started and not yet ended
  std::vector<stage_updates> stages_; // hosted
  bool recomputes_ahead_;
  int batch_, update_size_; // microbatches
  int limit_ = no_limit;    // updates of each stage
  int pause_ = no_limit;    // updates of each stage
  bool stops_ = false;      // ends the run at limit_
};

/// Follows a local rule. An update runs as soon as a stage has summed enough gradients.
/// Otherwise a user's rule chooses, or AMPNet's: the earliest backward, else the
/// earliest forward. Stage 0 limits the microbatches in flight.
class arrival_order : public order {
public:
  arrival_order(const schedule& sch, const shape& dims, int rank)
    : rank_(rank),
      keys_(*sch.active_keys()),
      update_size_(update_size(sch, dims)),
      batch_(dims.microbatches),
      run_microbatches_(dims.total()),
      total_(run_microbatches_),
      may_enter_(total_) {
    for (const auto& where : hosted_by(sch.where, dims, rank))
      stages_.push_back({where.stage, total_});
    if (const auto* rule = std::get_if<user_rule>(&sch.order))
      choose_ = rule->choose;
  }

  std::optional<action> next(waiting& arrived, may_begin permitted) override {
    if (running_)
      return {};
    auto choice = permitted != may_begin::passes ? update_due() : std::nullopt;
    if (!choice && permitted != may_begin::updates)
      choice = choose(arrived);
    if (!choice)
      return {};
    arrived.remove(*choice);
    held_ += choice->op == op::forward;
    if (choice->op == op::forward && choice->stage == 0) {
      ++in_flight_;
      ++entered_;
    }
    running_ = true;
    return choice;
  }

  void ended(const action& a) override {
    running_ = false;
    auto& stage = *std::ranges::find(stages_, a.stage, &stage_sums::stage);
    if (a.op == op::backward) {
      --held_;
      in_flight_ -= a.stage == 0;
      --stage.left;
      ++stage.summed;
      stage.last = a.microbatch;
    } else if (a.op == op::update) {
      stage.summed = 0;
    }
  }

  bool finished() override { return total_ == run_microbatches_ && is_through(); }

  std::optional<action> awaited() override { return {}; }

  // Microbatches are admitted at stage 0. Later stages must finish every microbatch
  // admitted.
  int freeze() override {
    if (stages_.front().stage > 0)
      return 0;
    may_enter_ = entered_;
    frozen_ = true;
    return entered_;
  }

  void stop_after(int microbatches) override {
    run_microbatches_ = microbatches;
    end_after(microbatches);
  }

  void pause_after(int batches) override {
    if (!frozen_)
      end_after(static_cast<int>(
        std::min<std::int64_t>(std::int64_t{batches} * batch_, run_microbatches_)));
  }

  bool paused() override { return total_ < run_microbatches_ && is_through(); }

private:
  /// Progress of the backwards of a hosted stage.
  struct stage_sums {
    int stage;
    int left;       // backwards to come
    int summed = 0; // gradients since the last update
    int last = 0;   // microbatch of the last backward
  };

  std::optional<action> choose(const waiting& arrived) const {
    const bool may_enter = in_flight_ < keys_ && entered_ < may_enter_;
    const int first = may_enter ? 0 : 1;
    if (!choose_) {
      const auto backward = arrived.lowest(op::backward);
      return backward ? backward : arrived.lowest(op::forward, first);
    }
    local_view view{rank_, arrived.find_all(op::forward, first), held_,
                    keys_ * static_cast<int>(stages_.size())};
    const auto backwards = arrived.find_all(op::backward);
    view.arrived.insert(view.arrived.end(), backwards.begin(), backwards.end());
    const auto choice = view.arrived.empty() ? std::nullopt : choose_(view);
    if (choice && std::ranges::find(view.arrived, *choice) == view.arrived.end())
      throw std::logic_error(
        "a rule of the schedule chose " + to_string(*choice, true)
        + ", which has not arrived: choose an action that has arrived");
    return choice;
  }

  void end_after(int microbatches) {
    for (auto& stage : stages_)
      stage.left += microbatches - total_;
    total_ = may_enter_ = microbatches;
  }

  bool is_through() const {
    return !running_ && std::ranges::all_of(stages_, [](const stage_sums& s) {
      return s.left == 0 && s.summed == 0;
    });
  }

  std::optional<action> update_due() const {
    for (const auto& s : stages_)
      if (s.summed > 0 && s.summed >= std::min(update_size_, s.left + s.summed))
        return action{op::update, 0, s.stage, s.last};
    return {};
  }

  std::vector<stage_sums> stages_;                                 // hosted
  std::function<std::optional<action>(const local_view&)> choose_; // may be empty
  int rank_;
  int keys_;
  int held_ = 0; // stage-microbatches
  int update_size_;
  int batch_;            // microbatches
  int run_microbatches_; // microbatches of the run
  int total_;            // microbatches until the end, or the pause
  int may_enter_;        // microbatches that may be admitted at stage 0
  int entered_ = 0;      // microbatches admitted at stage 0
  int in_flight_ = 0;    // microbatches in flight at stage 0
  bool running_ = false;
  bool frozen_ = false;
};

} // namespace

std::unique_ptr<order> make_order(const schedule& sch, const shape& dims, int rank) {
  if (sch.local_rule())
    return std::make_unique<arrival_order>(sch, dims, rank);
  return std::make_unique<program_order>(sch, dims, rank);
}

} // namespace troupe
