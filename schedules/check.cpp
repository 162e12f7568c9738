#include "schedules/check.hpp"

#include "schedules/program.hpp"
#include "schedules/rehearsed_run.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace troupe {

namespace {

/// All programs side by side, each run as far as the others allow.
class rehearsal {
public:
  rehearsal(const schedule& sch, const shape& dims, bool draws)
    : schedule_(sch), dims_(dims), draws_(draws), so_far_(sch, dims, draws) {
    for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank)
      programs_.emplace_back(sch, dims, rank);
    within_pair_.resize(programs_.size());
  }

  std::optional<program_fault> run() {
    std::deque<int> runnable;
    for (int rank = 0; rank < ranks(); ++rank)
      runnable.push_back(rank);
    while (!runnable.empty()) {
      const int rank = runnable.front();
      runnable.pop_front();
      for (const auto* a = front(rank); a != nullptr; a = front(rank)) {
        if (auto wrong = objection(*a, rank))
          return fault("rank " + std::to_string(rank) + ": " + wrong->what, rank,
                       wrong->mend);
        if (missing_input(rank))
          break;
        so_far_.perform(*a, rank);
        within_pair_[static_cast<std::size_t>(rank)] = a->pair == in_pair::first;
        if (const int other = hears_of(*a); other >= 0)
          runnable.push_back(other);
        at(rank).pop();
      }
    }
    if (auto fault = stuck())
      return fault;
    return missing();
  }

private:
  using state = rehearsed_run;

  /// What is wrong with a step, and what would mend it.
  struct reproach {
    std::string what;
    std::string mend = {};
  };

  int ranks() const { return static_cast<int>(programs_.size()); }

  program& at(int rank) { return programs_[static_cast<std::size_t>(rank)]; }
  const action* front(int rank) { return at(rank).front(); }

  int host_of(hosted_stage where) const {
    return rank_of(schedule_.where, dims_, where);
  }

  /// With its stage where a rank has several of a direction.
  std::string name_of(const action& a) const {
    return to_string(a, ranks() < dims_.stages);
  }

  /// An action that its rank cannot have.
  std::optional<reproach> misplaced(const action& a, int rank) const {
    const auto wrong = [&a](const std::string& what, std::string mend = {}) {
      return reproach{to_string(a, true) + " " + what, std::move(mend)};
    };
    if (a.stage < 0 || a.stage >= dims_.stages || a.microbatch < 0
        || a.microbatch >= dims_.total() || a.direction < 0
        || a.direction >= directions_of(schedule_.where))
      return wrong("is not in this run", "leave it out");
    if (const int host = host_of({a.direction, a.stage}); host != rank) {
      const auto there = "rank " + std::to_string(host);
      return wrong("belongs on " + there, "move it to " + there);
    }
    if (a.what != op::update
        && a.direction != direction_of(schedule_.where, dims_, a.microbatch))
      return wrong("is of a microbatch of the other direction");
    return {};
  }

  /// Two that cannot be one. \param a the next action of its rank
  std::optional<reproach> wrong_pair(const action& a, int rank) {
    if (a.pair == in_pair::second && !within_pair_[static_cast<std::size_t>(rank)])
      return reproach{to_string(a, true)
                      + " is the second of a pair that has no first"};
    if (a.pair != in_pair::first)
      return {};
    const auto* second = at(rank).second();
    if (second == nullptr || second->pair != in_pair::second)
      return reproach{to_string(a, true)
                      + " is the first of a pair that has no second"};
    const auto both = to_string(a, true) + " and " + to_string(*second, true);
    if (a.what != op::forward || !goes_back(second->what))
      return reproach{both
                      + " are no pair: a forward and a backward or input gradient "
                        "run as one"};
    if (auto wrong = misplaced(*second, rank))
      return wrong;
    if (const auto maker = so_far_.maker_of(*second);
        maker && maker->what == op::forward && maker->stage == a.stage
        && maker->microbatch == a.microbatch)
      return reproach{both
                        + " cannot be one: the second waits for what the first makes",
                      "run them one after the other"};
    return {};
  }

  /// What no waiting can mend.
  std::optional<reproach> objection(const action& a, int rank) {
    const auto wrong = [&a](const std::string& what, std::string mend = {}) {
      return reproach{to_string(a, true) + " " + what, std::move(mend)};
    };
    if (auto bad = misplaced(a, rank))
      return bad;
    if (auto bad = wrong_pair(a, rank))
      return bad;
    const auto done = so_far_.done(a.stage, a.microbatch);
    switch (a.what) {
    case op::forward:
      return (done & state::f) != 0 ? wrong("comes twice", "leave the second one out")
                                    : unheld(a, rank);
    case op::backward:
    case op::input_gradient:
      if ((done & state::dx) != 0)
        return wrong("comes twice", "leave the second one out");
      if ((done & state::f) == 0)
        return wrong(
          "comes before its forward",
          "move it behind "
            + to_string({op::forward, a.direction, a.stage, a.microbatch}, true));
      return a.what == op::backward ? out_of_order(a) : std::nullopt;
    case op::weight_gradient:
      if ((done & state::dw) != 0)
        return wrong("comes twice", "leave the second one out");
      if ((done & state::dx) == 0)
        return wrong(
          "comes before its input gradient",
          "move it behind "
            + to_string({op::input_gradient, a.direction, a.stage, a.microbatch},
                        true));
      return out_of_order(a);
    case op::update:
      return bad_update(a);
    case op::recompute:
      return wrong("is no step of a program: --recompute puts it there",
                   "leave it out");
    }
    return {};
  }

  /// A forward that there is no room for, or no version.
  std::optional<reproach> unheld(const action& a, int rank) {
    const auto& stage = so_far_.stage({a.direction, a.stage});
    if (const int held = so_far_.held(rank);
        schedule_.most_held > 0 && held >= schedule_.most_held)
      return reproach{
        to_string(a, true) + " would be the " + std::to_string(held + 1)
          + ". microbatch of a stage that the rank holds, and it may hold "
          + std::to_string(schedule_.most_held),
        "run a backward before it"};
    const auto version = version_read(schedule_, dims_, a.stage, a.microbatch);
    if (version && *version > stage.versions)
      return reproach{to_string(a, true) + " reads version " + std::to_string(*version)
                        + ", but this stage has made only "
                        + std::to_string(stage.versions),
                      "move it behind that update, or have the weight rule name an "
                      "older version"};
    if (stage.newest_forwarded < a.microbatch)
      return {};
    const auto after = to_string(a, true) + " comes after F"
                       + std::to_string(stage.newest_forwarded) + ": ";
    if (a.stage == 0)
      return reproach{after
                        + "samples enter stage 0 in the order of their microbatches",
                      "move it before that"};
    if (version && schedule_.asynchronous())
      return reproach{after
                        + "without a flush a stage forwards microbatches in order, as "
                          "versions are kept for those that are to come",
                      "move it before that"};
    return {};
  }

  std::optional<reproach> out_of_order(const action& a) {
    const int last = so_far_.stage({a.direction, a.stage}).last_summed;
    if (a.microbatch > last || schedule_.sums_in_any_order)
      return {};
    return reproach{to_string(a, true) + " is summed after microbatch "
                      + std::to_string(last),
                    "move it before that: sums in another order have other bits"};
  }

  std::optional<reproach> bad_update(const action& a) {
    const auto& stage = so_far_.stage({a.direction, a.stage});
    const int directions = directions_of(schedule_.where);
    const int whole = update_size(schedule_, dims_) / directions;
    const int left = dims_.total() / directions - stage.versions * whole;
    const int expected = std::min(whole, left);
    if (stage.summed == expected && expected > 0) {
      const int last_of_batch =
        (stage.newest_summed / dims_.microbatches + 1) * dims_.microbatches - 1;
      if (a.microbatch == stage.newest_summed || a.microbatch == last_of_batch)
        return {};
      const auto last = std::to_string(stage.newest_summed);
      return reproach{to_string(a, true) + " covers gradients up to microbatch " + last,
                      "name it U" + last};
    }
    const char* const says_so =
      schedule_.asynchronous() ? ", or say that an update covers so many (update_every)"
                               : "";
    auto what = to_string(a, true) + " covers " + std::to_string(stage.summed)
                + (stage.summed == 1 ? " gradient" : " gradients") + " instead of "
                + std::to_string(std::max(expected, 0));
    if (stage.summed >= expected)
      return reproach{std::move(what), "put an update behind every "
                                         + std::to_string(whole)
                                         + " of a stage's gradients" + says_so};
    const auto lacks = first_missing({a.direction, a.stage});
    if (!lacks)
      return reproach{std::move(what)};
    const auto name = to_string(*lacks, true);
    return reproach{what + ": " + name + " does not come before it",
                    "put " + name + " before it on rank "
                      + std::to_string(host_of({a.direction, a.stage}))
                      + std::string{says_so}};
  }

  /// What a stage has not yet done of its first microbatch whose gradient is missing.
  std::optional<action> first_missing(hosted_stage where) const {
    for (int m = 0; m < dims_.total(); ++m) {
      const auto done = so_far_.done(where.stage, m);
      if (direction_of(schedule_.where, dims_, m) != where.direction
          || (done & state::dw) != 0)
        continue;
      const auto what = (done & state::f) == 0    ? op::forward
                        : (done & state::dx) == 0 ? op::backward
                                                  : op::weight_gradient;
      return action{what, where.direction, where.stage, m};
    }
    return {};
  }

  /// What the next action of a rank waits for: its own input, or that of its pair.
  std::optional<action> missing_input(int rank) {
    const auto& next = *front(rank);
    if (!so_far_.has_input(next))
      return so_far_.maker_of(next);
    if (next.pair == in_pair::first && !so_far_.has_input(*at(rank).second()))
      return so_far_.maker_of(*at(rank).second());
    return {};
  }

  /// The rank that may go on when `a` has ended, or -1.
  int hears_of(const action& a) const {
    int stage = -1;
    if (a.what == op::forward)
      stage = a.stage + 1;
    if (goes_back(a.what))
      stage = a.stage - 1;
    if (stage < 0 || stage >= dims_.stages)
      return -1;
    return host_of({a.direction, stage});
  }

  std::optional<program_fault> stuck() {
    std::optional<int> first;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (front(rank) == nullptr)
        continue;
      if (!first)
        first = rank;
      const auto input = *missing_input(rank);
      const int maker = host_of({input.direction, input.stage});
      if (!found(input, maker))
        return fault("rank " + std::to_string(rank) + " waits at "
                       + to_string(*front(rank), true) + " for "
                       + to_string(input, true) + ", which no program contains",
                     rank, "add it to rank " + std::to_string(maker));
    }
    if (!first)
      return {};
    const auto [told, in_cycle] = cycle_from(*first);
    return fault("deadlock: " + told, in_cycle, way_out(in_cycle));
  }

  /// An action of a rank's program, or an I in place of its B; absent if it has none.
  std::optional<action> found(const action& a, int rank) const {
    for (program p{schedule_, dims_, rank}; p.front() != nullptr; p.pop()) {
      auto b = *p.front();
      b.pair = in_pair::no;
      auto as_backward = b;
      if (b.what == op::input_gradient)
        as_backward.what = op::backward;
      if (as_backward == a)
        return b;
    }
    return {};
  }

  /// As the program of its rank has it.
  action as_written(const action& a) const {
    return found(a, host_of({a.direction, a.stage})).value_or(a);
  }

  /// Who waits for whom, from `rank` to the first rank that comes again, and which.
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

  /// What a rank of a cycle would have to run earlier: what another one waits for.
  std::string way_out(int rank) {
    const auto& blocked = *front(rank);
    for (int other = 0; other < ranks(); ++other) {
      if (front(other) == nullptr)
        continue;
      const auto wanted = *missing_input(other);
      if (host_of({wanted.direction, wanted.stage}) != rank)
        continue;
      if (so_far_.has_input(wanted))
        return "run " + name_of(as_written(wanted)) + " of rank " + std::to_string(rank)
               + ", whose input is there, before " + name_of(blocked);
    }
    return {};
  }

  std::optional<program_fault> missing() {
    for (int s = 0; s < dims_.stages; ++s)
      for (int m = 0; m < dims_.total(); ++m) {
        const auto done = so_far_.done(s, m);
        if (done == (state::f | state::dx | state::dw))
          continue;
        const char* what = (done & state::f) == 0    ? "forward"
                           : (done & state::dx) == 0 ? "backward"
                                                     : "weight gradient";
        const int host = host_of({direction_of(schedule_.where, dims_, m), s});
        return fault("stage " + std::to_string(s) + " has no " + what
                       + " of microbatch " + std::to_string(m),
                     host, "add it to rank " + std::to_string(host));
      }
    for (int d = 0; d < directions_of(schedule_.where); ++d)
      for (int s = 0; s < dims_.stages; ++s)
        if (const int summed = so_far_.stage({d, s}).summed; summed > 0)
          return fault("stage " + std::to_string(s) + " has gradients of "
                         + std::to_string(summed)
                         + " microbatches that no update covers",
                       host_of({d, s}), "end its program with an update");
    return {};
  }

  program_fault fault(std::string what, int guilty, std::string mend = {}) {
    if (!draws_)
      return {std::move(what), {}, std::move(mend)};
    std::vector<std::optional<action>> next;
    for (int rank = 0; rank < ranks(); ++rank)
      next.push_back(front(rank) != nullptr ? std::optional{*front(rank)}
                                            : std::nullopt);
    return {std::move(what), so_far_.draw(guilty, next), std::move(mend)};
  }

  const schedule& schedule_;
  shape dims_;
  bool draws_;
  rehearsed_run so_far_;
  std::vector<program> programs_;
  std::vector<bool> within_pair_; // a rank, whose pair's second comes next
};

} // namespace

std::string to_string(const program_fault& fault) {
  auto result = fault.what;
  if (!fault.picture.empty())
    result += "\n" + fault.picture;
  if (!fault.mend.empty())
    result += (fault.picture.empty() ? "\n" : "") + std::string{"It might help to "}
              + fault.mend + ".";
  return result;
}

std::optional<program_fault> check(const schedule& sch, const shape& dims) {
  if (auto wrong = refusal(sch, dims); !wrong.empty())
    return program_fault{std::move(wrong), {}, {}};
  if (auto wrong = contradiction(sch.where, dims); !wrong.empty())
    return program_fault{std::move(wrong), {}, {}};
  if (sch.local_rule())
    return {};
  // Each recomputation waits for what the action behind it needs, or for nothing.
  auto plain = sch;
  plain.recomputes = recomputation::none;
  auto fault = rehearsal{plain, dims, false}.run();
  return fault ? rehearsal{plain, dims, true}.run() : fault;
}

} // namespace troupe
