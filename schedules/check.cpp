#include "schedules/check.hpp"

#include "schedules/program.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace troupe {

namespace {

/// All programs side by side, each run as far as the others allow.
class rehearsal {
public:
  rehearsal(const schedule& sch, const shape& dims)
    : schedule_(sch),
      dims_(dims),
      done_(static_cast<std::size_t>(dims.stages)
            * static_cast<std::size_t>(dims.total())),
      stages_(static_cast<std::size_t>(dims.stages)
              * static_cast<std::size_t>(directions_of(sch.where))) {
    for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank)
      ranks_.push_back({program{sch, dims, rank}, 0});
  }

  std::optional<program_fault> run() {
    std::deque<int> runnable;
    for (int rank = 0; rank < ranks(); ++rank)
      runnable.push_back(rank);
    while (!runnable.empty()) {
      const int rank = runnable.front();
      runnable.pop_front();
      for (const auto* a = at(rank).rest.front(); a != nullptr;
           a = at(rank).rest.front()) {
        if (auto wrong = objection(*a, rank))
          return fault("rank " + std::to_string(rank) + ": " + *wrong, rank);
        if (!inputs_are_there(*a))
          break;
        perform(*a);
        if (const int other = hears_of(*a); other >= 0)
          runnable.push_back(other);
        at(rank).rest.pop();
        ++at(rank).ran;
      }
    }
    if (auto fault = stuck())
      return fault;
    return missing();
  }

private:
  enum flag : unsigned char { f = 1, dx = 2, dw = 4 };

  struct rank_state {
    program rest;
    std::size_t ran;
  };

  struct stage_state {
    int versions = 0;     // updates made
    int summed = 0;       // gradients since the last one
    int last_summed = -1; // microbatch
  };

  int ranks() const { return static_cast<int>(ranks_.size()); }

  rank_state& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  unsigned char& done(int stage, int microbatch) {
    return done_[static_cast<std::size_t>(stage)
                   * static_cast<std::size_t>(dims_.total())
                 + static_cast<std::size_t>(microbatch)];
  }

  stage_state& state(const action& a) {
    return stages_[static_cast<std::size_t>(a.direction)
                     * static_cast<std::size_t>(dims_.stages)
                   + static_cast<std::size_t>(a.stage)];
  }

  int host_of(hosted_stage where) const {
    return rank_of(schedule_.where, dims_, where);
  }

  /// With its stage where a rank has several of a direction.
  std::string name_of(const action& a) const {
    return to_string(a, ranks() < dims_.stages);
  }

  /// What no waiting can mend.
  std::optional<std::string> objection(const action& a, int rank) {
    const auto wrong = [&a](const std::string& what) {
      return to_string(a, true) + " " + what;
    };
    if (a.stage < 0 || a.stage >= dims_.stages || a.microbatch < 0
        || a.microbatch >= dims_.total() || a.direction < 0
        || a.direction >= directions_of(schedule_.where))
      return wrong("is not in this run");
    if (const int host = host_of({a.direction, a.stage}); host != rank)
      return wrong("belongs on rank " + std::to_string(host));
    if (a.what != op::update
        && a.direction != direction_of(schedule_.where, dims_, a.microbatch))
      return wrong("is of a microbatch of the other direction");
    auto& stage = state(a);
    const auto so_far = done(a.stage, a.microbatch);
    switch (a.what) {
    case op::forward:
      if ((so_far & f) != 0)
        return wrong("comes twice");
      if (const auto version = version_read(schedule_, dims_, a.stage, a.microbatch);
          version && *version > stage.versions)
        return wrong("reads version " + std::to_string(*version)
                     + ", but this stage has made only "
                     + std::to_string(stage.versions));
      return {};
    case op::backward:
    case op::input_gradient:
      if ((so_far & dx) != 0)
        return wrong("comes twice");
      if ((so_far & f) == 0)
        return wrong("comes before its forward");
      return a.what == op::backward ? out_of_order(a) : std::nullopt;
    case op::weight_gradient:
      if ((so_far & dw) != 0)
        return wrong("comes twice");
      if ((so_far & dx) == 0)
        return wrong("comes before its input gradient");
      return out_of_order(a);
    case op::update:
      return bad_update(a);
    }
    return {};
  }

  std::optional<std::string> out_of_order(const action& a) {
    if (a.microbatch > state(a).last_summed)
      return {};
    return to_string(a, true) + " is summed after microbatch "
           + std::to_string(state(a).last_summed);
  }

  std::optional<std::string> bad_update(const action& a) {
    const auto& stage = state(a);
    const int directions = directions_of(schedule_.where);
    const int whole = update_size(schedule_, dims_) / directions;
    const int left = dims_.total() / directions - stage.versions * whole;
    const int expected = std::min(whole, left);
    if (stage.summed == expected && expected > 0)
      return {};
    return to_string(a, true) + " covers " + std::to_string(stage.summed)
           + " gradients instead of " + std::to_string(std::max(expected, 0));
  }

  bool inputs_are_there(const action& a) {
    if (a.what == op::forward)
      return a.stage == 0 || (done(a.stage - 1, a.microbatch) & f) != 0;
    if (a.what == op::backward || a.what == op::input_gradient)
      return a.stage == dims_.stages - 1 || (done(a.stage + 1, a.microbatch) & dx) != 0;
    return true;
  }

  void perform(const action& a) {
    auto& stage = state(a);
    if (a.what == op::update) {
      ++stage.versions;
      stage.summed = 0;
      return;
    }
    auto& flags = done(a.stage, a.microbatch);
    if (a.what == op::forward)
      flags |= f;
    if (a.what == op::backward || a.what == op::input_gradient)
      flags |= dx;
    if (a.what == op::backward || a.what == op::weight_gradient) {
      flags |= dw;
      ++stage.summed;
      stage.last_summed = a.microbatch;
    }
  }

  /// The rank that may go on when `a` has ended, or -1.
  int hears_of(const action& a) const {
    int stage = -1;
    if (a.what == op::forward)
      stage = a.stage + 1;
    if (a.what == op::backward || a.what == op::input_gradient)
      stage = a.stage - 1;
    if (stage < 0 || stage >= dims_.stages)
      return -1;
    return host_of({a.direction, stage});
  }

  /// The action on another rank that `a` waits for.
  static action input_of(const action& a) {
    if (a.what == op::forward)
      return {op::forward, a.direction, a.stage - 1, a.microbatch};
    return {op::backward, a.direction, a.stage + 1, a.microbatch};
  }

  std::optional<program_fault> stuck() {
    for (int rank = 0; rank < ranks(); ++rank) {
      const auto* a = at(rank).rest.front();
      if (a == nullptr)
        continue;
      const auto input = input_of(*a);
      const int maker = host_of({a->direction, input.stage});
      if (!comes(input, maker))
        return fault("rank " + std::to_string(rank) + " waits at " + to_string(*a, true)
                       + " for " + to_string(input, true)
                       + ", which no program contains",
                     rank);
    }
    for (int rank = 0; rank < ranks(); ++rank)
      if (at(rank).rest.front() != nullptr)
        return fault("deadlock: " + cycle_from(rank), rank);
    return {};
  }

  /// Whether a rank's program contains `a`, or an I in place of its B.
  bool comes(const action& a, int rank) const {
    for (program p{schedule_, dims_, rank}; p.front() != nullptr; p.pop()) {
      auto b = *p.front();
      if (b.what == op::input_gradient)
        b.what = op::backward;
      if (b == a)
        return true;
    }
    return false;
  }

  /// Who waits for whom, from `rank` to the first rank that comes again.
  std::string cycle_from(int rank) {
    std::string result;
    std::vector<bool> seen(ranks_.size());
    while (!seen[static_cast<std::size_t>(rank)]) {
      seen[static_cast<std::size_t>(rank)] = true;
      const auto& a = *at(rank).rest.front();
      const auto input = input_of(a);
      const int maker = host_of({a.direction, input.stage});
      result += "rank " + std::to_string(rank) + " waits at " + name_of(a) + " for "
                + name_of(input) + " of rank " + std::to_string(maker) + "; ";
      rank = maker;
    }
    return result + "rank " + std::to_string(rank) + " is in the cycle";
  }

  std::optional<program_fault> missing() {
    for (int s = 0; s < dims_.stages; ++s)
      for (int m = 0; m < dims_.total(); ++m) {
        const auto flags = done(s, m);
        if (flags == (f | dx | dw))
          continue;
        const char* what = (flags & f) == 0    ? "forward"
                           : (flags & dx) == 0 ? "backward"
                                               : "weight gradient";
        return fault("stage " + std::to_string(s) + " has no " + what
                       + " of microbatch " + std::to_string(m),
                     host_of({direction_of(schedule_.where, dims_, m), s}));
      }
    for (std::size_t i = 0; i < stages_.size(); ++i)
      if (stages_[i].summed > 0) {
        const int s = static_cast<int>(i) % dims_.stages;
        const int direction = static_cast<int>(i) / dims_.stages;
        return fault("stage " + std::to_string(s) + " has gradients of "
                       + std::to_string(stages_[i].summed)
                       + " microbatches that no update covers",
                     host_of({direction, s}));
      }
    return {};
  }

  /// The last actions that each rank ran and the next ones, around where it stands.
  program_fault fault(std::string what, int guilty) {
    constexpr std::size_t around = 8;
    constexpr int rows_around = 4;
    std::string grid;
    for (int rank = std::max(0, guilty - rows_around);
         rank < std::min(ranks(), guilty + rows_around + 1); ++rank) {
      const auto stand = at(rank).ran;
      grid += (rank == guilty ? "> rank " : "  rank ") + std::to_string(rank) + " ";
      if (stand > around)
        grid += " ...";
      std::size_t i = 0;
      for (program p{schedule_, dims_, rank};
           p.front() != nullptr && i <= stand + around; p.pop(), ++i)
        if (i + around >= stand) {
          const auto name = to_string(*p.front());
          grid += i == stand ? " [" + name + "]" : " " + name;
        }
      grid += '\n';
    }
    return {std::move(what), std::move(grid)};
  }

  const schedule& schedule_;
  shape dims_;
  std::vector<unsigned char> done_;
  std::vector<stage_state> stages_;
  std::vector<rank_state> ranks_;
};

} // namespace

std::optional<program_fault> check(const schedule& sch, const shape& dims) {
  if (auto wrong = contradiction(sch.where, dims); !wrong.empty())
    return program_fault{std::move(wrong), {}};
  if (sch.local_rule())
    return {};
  return rehearsal{sch, dims}.run();
}

} // namespace troupe
