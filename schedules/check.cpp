// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/check.hpp"

#include "schedules/action_validator.hpp"
#include "schedules/dry_run.hpp"
#include "schedules/program.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace troupe {

namespace {

/// Runs all programs together, each as far as the others allow.
class program_check {
public:
  program_check(const schedule& sch, const shape& dims, bool draws)
    : schedule_(sch),
      dims_(dims),
      draws_(draws),
      so_far_(sch, dims, draws),
      validator_(sch, dims, so_far_) {
    for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank)
      programs_.emplace_back(sch, dims, rank);
  }

  std::optional<program_error> run() {
    std::deque<int> runnable;
    for (int rank = 0; rank < ranks(); ++rank)
      runnable.push_back(rank);
    while (!runnable.empty()) {
      const int rank = runnable.front();
      runnable.pop_front();
      for (const auto* a = front(rank); a != nullptr; a = front(rank)) {
        if (auto error = validator_.validate(*a, program_of(rank).second(), rank))
          return fault("rank " + std::to_string(rank) + ": " + error->text, rank,
                       error->fix);
        if (missing_input(rank))
          break;
        so_far_.apply(*a, rank);
        if (const int receiver = receiver_of(*a); receiver >= 0)
          runnable.push_back(receiver);
        program_of(rank).pop();
      }
    }
    if (auto fault = stuck())
      return fault;
    return missing();
  }

private:
  int ranks() const { return static_cast<int>(programs_.size()); }

  program& program_of(int rank) { return programs_[static_cast<std::size_t>(rank)]; }
  const action* front(int rank) { return program_of(rank).front(); }

  int host_of(hosted_stage where) const {
    return rank_of(schedule_.where, dims_, where);
  }

  /// The name of an action, with the stage where a rank hosts several stages of a
  /// direction.
  std::string name_of(const action& a) const {
    return to_string(a, ranks() < dims_.stages);
  }

  /// The missing input of a rank's next action, or of the second action of a pair;
  /// absent if inputs exist.
  std::optional<action> missing_input(int rank) {
    const auto& next = *front(rank);
    if (!so_far_.has_input(next))
      return so_far_.maker_of(next);
    if (next.pair == in_pair::first && !so_far_.has_input(*program_of(rank).second()))
      return so_far_.maker_of(*program_of(rank).second());
    return {};
  }

  /// The rank that may continue when `a` has ended, or -1.
  int receiver_of(const action& a) const {
    int stage = -1;
    if (a.op == op::forward)
      stage = a.stage + 1;
    if (goes_back(a.op))
      stage = a.stage - 1;
    if (stage < 0 || stage >= dims_.stages)
      return -1;
    return host_of({a.direction, stage});
  }

  std::optional<program_error> stuck() {
    std::optional<int> first;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (front(rank) == nullptr)
        continue;
      if (!first)
        first = rank;
      const auto input = *missing_input(rank);
      const int maker = host_of({input.direction, input.stage});
      if (!find_action(input, maker))
        return fault(
          "rank " + std::to_string(rank) + " waits at " + to_string(*front(rank), true)
            + " for " + to_string(input, true) + ", which no program contains",
          rank, "add " + to_string(input, true) + " to rank " + std::to_string(maker));
    }
    if (!first)
      return {};
    const auto [text, in_cycle] = cycle_from(*first);
    return fault("deadlock: " + text, in_cycle, way_out(in_cycle));
  }

  /// The action `a` in a rank's program, or an input gradient in place of a backward;
  /// absent if neither is there.
  std::optional<action> find_action(const action& a, int rank) const {
    for (program p{schedule_, dims_, rank}; p.front() != nullptr; p.pop()) {
      auto b = *p.front();
      b.pair = in_pair::no;
      auto as_backward = b;
      if (b.op == op::input_gradient)
        as_backward.op = op::backward;
      if (as_backward == a)
        return b;
    }
    return {};
  }

  /// The action as the program of the hosting rank contains it.
  action as_written(const action& a) const {
    return find_action(a, host_of({a.direction, a.stage})).value_or(a);
  }

  /// Describes which rank waits for which, from `rank` to the first rank that occurs
  /// twice. Returns the text and that rank.
  std::pair<std::string, int> cycle_from(int rank) {
    std::string result;
    std::vector<bool> seen(programs_.size());
    while (!seen[static_cast<std::size_t>(rank)]) {
      seen[static_cast<std::size_t>(rank)] = true;
      const auto input = as_written(*missing_input(rank));
      const int maker = host_of({input.direction, input.stage});
      result += "rank " + std::to_string(rank) + " waits at " + name_of(*front(rank))
                + " for " + name_of(input) + " of rank " + std::to_string(maker) + "; ";
      rank = maker;
    }
    return {result + "rank " + std::to_string(rank) + " is in the cycle", rank};
  }

  /// A fix for a deadlock: the action that `rank` should run earlier, because another
  /// rank waits for the result. Empty if there is none.
  std::string way_out(int rank) {
    const auto& blocked = *front(rank);
    for (int waiting_rank = 0; waiting_rank < ranks(); ++waiting_rank) {
      if (front(waiting_rank) == nullptr)
        continue;
      const auto wanted = *missing_input(waiting_rank);
      if (host_of({wanted.direction, wanted.stage}) != rank)
        continue;
      if (so_far_.has_input(wanted))
        return "run " + name_of(as_written(wanted)) + " of rank " + std::to_string(rank)
               + ", whose input has arrived, before " + name_of(blocked);
    }
    return {};
  }

  std::optional<program_error> missing() {
    for (int s = 0; s < dims_.stages; ++s)
      for (int m = 0; m < dims_.total(); ++m) {
        const auto done = so_far_.done(s, m);
        if (done == (dry_run::f | dry_run::dx | dry_run::dw))
          continue;
        const char* pass_name = (done & dry_run::f) == 0    ? "forward"
                                : (done & dry_run::dx) == 0 ? "backward"
                                                            : "weight gradient";
        const int host = host_of({direction_of(schedule_.where, dims_, m), s});
        return fault("stage " + std::to_string(s) + " has no " + pass_name
                       + " of microbatch " + std::to_string(m),
                     host,
                     std::string{"add the "} + pass_name + " to rank "
                       + std::to_string(host));
      }
    for (int d = 0; d < directions_of(schedule_.where); ++d)
      for (int s = 0; s < dims_.stages; ++s)
        if (const int summed = so_far_.stage({d, s}).summed; summed > 0)
          return fault("stage " + std::to_string(s) + " has gradients of "
                         + std::to_string(summed)
                         + " microbatches that no update covers",
                       host_of({d, s}), "end the stage's program with an update");
    return {};
  }

  program_error fault(std::string text, int failed_rank, std::string fix = {}) {
    if (!draws_)
      return {std::move(text), {}, std::move(fix)};
    std::vector<std::optional<action>> next;
    for (int rank = 0; rank < ranks(); ++rank)
      next.push_back(front(rank) != nullptr ? std::optional{*front(rank)}
                                            : std::nullopt);
    return {std::move(text), so_far_.draw(failed_rank, next), std::move(fix)};
  }

  const schedule& schedule_;
  shape dims_;
  bool draws_;
  dry_run so_far_;
  action_validator validator_;
  std::vector<program> programs_;
};

} // namespace

std::string to_string(const program_error& fault) {
  auto result = fault.text;
  if (!fault.picture.empty())
    result += "\n" + fault.picture;
  if (!fault.fix.empty())
    result += (fault.picture.empty() ? "\n" : "") + std::string{"It might help to "}
              + fault.fix + ".";
  return result;
}

std::optional<program_error> check(const schedule& sch, const shape& dims) {
  if (auto error = validation_error(sch, dims); !error.empty())
    return program_error{std::move(error), {}, {}};
  if (auto error = validation_error(sch.where, dims); !error.empty())
    return program_error{std::move(error), {}, {}};
  if (sch.local_rule())
    return {};
  // Recomputations need no check: each waits for the input of the next action, or for
  // nothing.
  auto plain = sch;
  plain.recomputes = recomputation::none;
  auto fault = program_check{plain, dims, false}.run();
  return fault ? program_check{plain, dims, true}.run() : fault;
}

} // namespace troupe
