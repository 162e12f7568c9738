// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/greedy_search.hpp"

#include "schedules/program.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

using search_time = std::int64_t;

search_time cost_of(const search_rules& rules, op operation, int stage) {
  const auto& values = operation == op::forward           ? rules.forward
                       : operation == op::weight_gradient ? rules.weight
                       : operation == op::update          ? rules.update
                                                          : rules.backward;
  return values[values.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
}

class greedy {
public:
  greedy(const search_rules& rules, const placement& where, const shape& dims)
    : rules_(rules),
      where_(where),
      dims_(dims),
      ranks_(static_cast<std::size_t>(ranks_of(where, dims))) {
    // nop
  }

  batch_programs run() {
    admit_next();
    for (int r = 0; r < ranks(); ++r)
      begin(r, 0);
    while (!events_.empty()) {
      const auto now = events_.top().when;
      while (!events_.empty() && events_.top().when == now) {
        const auto next = events_.top().ended_action;
        events_.pop();
        if (next)
          end(*next);
      }
      for (int r = 0; r < ranks(); ++r)
        begin(r, now);
    }
    batch_programs result;
    for (int r = 0; r < ranks(); ++r) {
      auto& program = result.emplace_back(std::move(state_of(r).ran));
      for (const auto& hosted : hosted_by(where_, dims_, r))
        program.push_back({op::update, 0, hosted.stage, dims_.microbatches - 1});
    }
    return result;
  }

private:
  struct rank_state {
    std::vector<action> ready;   // forwards and (input) backwards
    std::vector<action> weights; // weight gradients still to run, in order
    bool busy = false;
    bool ran_backward = false; // as the last action that was no weight gradient
    int held = 0;
    int ahead = 0; // forwards whose backward has not begun
    std::vector<action> ran;
  };

  struct event {
    search_time when;
    std::optional<action> ended_action; // the action that ends

    bool operator<(const event& rhs) const { return when > rhs.when; }
  };

  int ranks() const { return static_cast<int>(ranks_.size()); }
  rank_state& state_of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  rank_state& host(int stage) { return state_of(rank_of(where_, dims_, {0, stage})); }
  search_time cost(op operation, int stage) const {
    return cost_of(rules_, operation, stage);
  }

  /// Admits the next microbatch, if the pipeline has capacity.
  void admit_next() {
    if (entered_ < dims_.microbatches
        && (rules_.in_flight == 0 || entered_ - left_ < rules_.in_flight))
      host(0).ready.push_back({op::forward, 0, 0, entered_++});
  }

  void end(const action& a) {
    auto& rank = host(a.stage);
    rank.busy = false;
    const op back = rules_.splits ? op::input_gradient : op::backward;
    if (a.op == op::forward && a.stage + 1 < dims_.stages)
      host(a.stage + 1).ready.push_back({op::forward, 0, a.stage + 1, a.microbatch});
    else if (a.op == op::forward)
      rank.ready.push_back({back, 0, a.stage, a.microbatch});
    else if (a.op == back && a.stage > 0)
      host(a.stage - 1).ready.push_back({back, 0, a.stage - 1, a.microbatch});
    if (a.op == op::input_gradient)
      rank.weights.push_back({op::weight_gradient, 0, a.stage, a.microbatch});
    if (adds_gradient(a.op))
      --rank.held;
    if (a.op == back && a.stage == 0) {
      ++left_;
      if (rules_.in_flight > 0)
        admit_next();
    }
  }

  /// Whether a rank may hold one more microbatch. Stages leave capacity for later
  /// stages of the rank, because backwards of later stages come first.
  bool has_capacity(int rank, const action& forward) {
    const auto to_last = dims_.stages - forward.stage;
    if (const int most = rules_.ahead * to_last - (rules_.ahead - 1);
        rules_.ahead > 0 && state_of(rank).ahead >= most)
      return false;
    if (rules_.most_held == 0)
      return true;
    int later_stages = 0;
    for (const auto& hosted : hosted_by(where_, dims_, rank))
      later_stages += hosted.stage > forward.stage;
    return state_of(rank).held + 1 + later_stages <= rules_.most_held;
  }

  std::optional<action> best_pass(int rank, bool forwards_first) {
    const auto better = [&](const action& a, const action& b) {
      return std::tuple{(a.op == op::forward) != forwards_first, a.microbatch, -a.stage}
             < std::tuple{(b.op == op::forward) != forwards_first, b.microbatch,
                          -b.stage};
    };
    std::optional<action> best;
    for (const auto& a : state_of(rank).ready)
      if ((a.op != op::forward || has_capacity(rank, a)) && (!best || better(a, *best)))
        best = a;
    return best;
  }

  /// Whether an input arrives for a rank between two times.
  bool arrives(int rank, search_time from, search_time to) const {
    return std::any_of(under_way_.upper_bound({from, dims_.stages}),
                       under_way_.lower_bound({to, 0}), [&](const auto& arrival) {
                         return rank_of(where_, dims_, {0, arrival.second}) == rank;
                       });
  }

  void begin(int rank, search_time now) {
    auto& r = state_of(rank);
    if (r.busy)
      return;
    const bool forwards_first = rules_.alternates && r.ran_backward;
    auto next = best_pass(rank, forwards_first);
    const bool forward_is_there =
      std::ranges::any_of(r.ready, [](const action& a) { return a.op == op::forward; });
    // A weight gradient frees capacity for a forward whose turn has come.
    const bool backward =
      next && next->op != op::forward && !(forwards_first && forward_is_there);
    const bool is_turn = next && next->op == op::forward && rules_.forward_first;
    if (!r.weights.empty() && !backward && !is_turn) {
      const auto takes = cost(op::weight_gradient, r.weights.front().stage);
      if (rules_.waits && !next && arrives(rank, now, now + (takes + 1) / 2))
        return; // the rank chooses again at that arrival
      next = r.weights.front();
    }
    if (!next)
      return;
    if (next->op != op::weight_gradient)
      r.ran_backward = next->op != op::forward;
    if (next->op == op::weight_gradient)
      r.weights.erase(r.weights.begin());
    else
      std::erase(r.ready, *next);
    r.busy = true;
    r.held += next->op == op::forward;
    r.ahead += next->op == op::forward ? 1 : next->op == op::weight_gradient ? 0 : -1;
    r.ran.push_back(*next);
    const auto end_time = now + cost(next->op, next->stage);
    events_.push({end_time, *next});
    if (next->op == op::forward)
      under_way_.emplace(end_time, std::min(next->stage + 1, dims_.stages - 1));
    else if (next->op != op::weight_gradient)
      under_way_.emplace(end_time, std::max(next->stage - 1, 0));
    under_way_.erase(under_way_.begin(), under_way_.upper_bound({now, dims_.stages}));
    if (next->op == op::forward && next->stage == 0)
      admit_next();
  }

  search_rules rules_;
  const placement& where_;
  shape dims_;
  std::vector<rank_state> ranks_;
  std::priority_queue<event> events_;
  std::set<std::pair<search_time, int>> under_way_; // end times of passes, and stages
  int entered_ = 0;                                 // microbatches
  int left_ = 0;
};

/// Places batches in time, one after another. A rank starts a batch when the previous
/// batch has ended there, and an action when the input has arrived.
class batch_layout {
public:
  batch_layout(const batch_programs& programs, const search_rules& rules,
               const placement& where, const shape& dims)
    : programs_(programs),
      rules_(rules),
      dims_(dims),
      free_at_(programs.size()),
      next_(programs.size()) {
    for (int s = 0; s < dims.stages; ++s)
      hosts_.push_back(rank_of(where, dims, {0, s}));
  }

  search_time makespan() {
    for (int batch = 0; batch < dims_.steps; ++batch)
      add_batch();
    return std::ranges::max(free_at_);
  }

private:
  static constexpr search_time unknown = -1;

  std::size_t index(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage)
             * static_cast<std::size_t>(dims_.microbatches)
           + static_cast<std::size_t>(microbatch);
  }
  int host(int stage) const { return hosts_[static_cast<std::size_t>(stage)]; }

  void add_batch() {
    const auto passes = index(dims_.stages, 0);
    forwards_.assign(passes, unknown);
    gradients_.assign(passes, unknown);
    std::ranges::fill(next_, 0);
    for (bool advances = true; advances;) {
      advances = false;
      for (std::size_t r = 0; r < programs_.size(); ++r)
        while (next_[r] < programs_[r].size() && try_place(programs_[r][next_[r]], r)) {
          ++next_[r];
          advances = true;
        }
    }
    for (std::size_t r = 0; r < programs_.size(); ++r)
      if (next_[r] < programs_[r].size())
        throw std::logic_error{"a rank of a searched schedule waits for ever"};
  }

  /// Time at which the input of an action arrives; unknown before the sender has run.
  search_time input_of(const action& a) const {
    if (a.op == op::update || a.op == op::weight_gradient)
      return 0;
    const bool forward = a.op == op::forward;
    if (forward && a.stage == 0)
      return 0;
    if (!forward && a.stage + 1 == dims_.stages)
      return forwards_[index(a.stage, a.microbatch)];
    const int sender = forward ? a.stage - 1 : a.stage + 1;
    const auto output_time =
      (forward ? forwards_ : gradients_)[index(sender, a.microbatch)];
    const bool travels = host(sender) != host(a.stage);
    return output_time == unknown || !travels ? output_time
                                              : output_time + rules_.latency;
  }

  bool try_place(const action& a, std::size_t rank) {
    const auto input = input_of(a);
    if (input == unknown)
      return false;
    const auto end = std::max(free_at_[rank], input) + cost_of(rules_, a.op, a.stage);
    free_at_[rank] = end;
    if (a.op == op::forward)
      forwards_[index(a.stage, a.microbatch)] = end;
    else if (goes_back(a.op))
      gradients_[index(a.stage, a.microbatch)] = end;
    return true;
  }

  const batch_programs& programs_;
  const search_rules& rules_;
  shape dims_;
  std::vector<int> hosts_;                        // per stage
  std::vector<search_time> free_at_;              // per rank
  std::vector<std::size_t> next_;                 // index of the next action, per rank
  std::vector<search_time> forwards_, gradients_; // end times
};

/// Results of searches, by numbers of stages, microbatches and batches.
struct memory_of_search {
  std::mutex lock;
  std::map<std::tuple<int, int, int>, batch_programs> programs;
};

/// The fastest of the candidates; of equal candidates, the first.
batch_programs fastest(std::vector<batch_programs> candidates,
                       const search_rules& costs, const placement& where,
                       const shape& dims) {
  if (candidates.size() == 1)
    return std::move(candidates.front());
  return std::move(
    *std::ranges::min_element(candidates, {}, [&](const auto& candidate) {
      return makespan_of(candidate, costs, where, dims);
    }));
}

} // namespace

batch_programs search(const search_rules& rules, const placement& where,
                      const shape& dims) {
  return greedy{rules, where, dims}.run();
}

std::int64_t makespan_of(const batch_programs& programs, const search_rules& rules,
                         const placement& where, const shape& dims) {
  return batch_layout{programs, rules, where, dims}.makespan();
}

explicit_program best_of(tried_rules tried, placement where, known_programs known) {
  return batch_by_batch(
    [tried = std::move(tried), where = std::move(where), known = std::move(known),
     memory = std::make_shared<memory_of_search>()](int rank, const shape& dims) {
      constexpr int most_batches = 7;
      const shape judged{dims.stages, dims.microbatches,
                         std::min(dims.steps, most_batches)};
      const std::lock_guard guard{memory->lock};
      const auto [entry, is_new] = memory->programs.try_emplace(
        {judged.stages, judged.microbatches, judged.steps});
      if (is_new) {
        const auto rules = tried(judged);
        std::vector<batch_programs> candidates;
        for (const auto& rule_set : rules)
          candidates.push_back(search(rule_set, where, judged));
        if (known)
          std::ranges::move(known(judged), std::back_inserter(candidates));
        entry->second = fastest(std::move(candidates), rules.front(), where, judged);
      }
      return entry->second[static_cast<std::size_t>(rank)];
    });
}

} // namespace troupe
