// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/record_validation.hpp"

#include "plan/replica_rules.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// The state of a microbatch in flight.
struct flight {
  int version;           ///< Version that the forward read.
  bool returned = false; ///< Input gradient is made, W is still to come.
};

/// Counts for one direction of a stage, up to the current action of the record.
struct stage_counts {
  int forwarded = 0, returned = 0, backwarded = 0, updates = 0;
  bool forwards = false;           ///< A forward has begun; an update may overtake it.
  std::map<int, flight> in_flight; ///< By microbatch.
  std::vector<int> summed;         ///< Microbatches summed since the last update.
  std::map<int, int> summed_read;  ///< Versions that the forwards of `summed` read.
  std::optional<int> recomputed;   ///< Microbatch, from recomputation to backward.
};

/// Checks the row of one rank: all of its recorded actions, in order.
class row_check {
public:
  row_check(const run_plan& plan, const published::rule& paper_rule, int rank)
    : rule_(paper_rule),
      dims_(plan.dims),
      rank_(plan.pipe_rank(rank)),
      share_(dims_.microbatches / published::directions(paper_rule)),
      recomputes_(plan.recomputes()),
      forwards_wait_(plan.mesh[axis::tensor] > 1
                     || shares_out(plan, shared_out::parameters)
                     || (plan.work && !plan.work->whole.experts.empty())),
      name_("rank " + std::to_string(rank)) {
    for (int d = 0; d < published::directions(paper_rule); ++d)
      for (int s = 0; s < dims_.stages; ++s)
        if (published::host(paper_rule, dims_, s, d) == rank_)
          counts_[{d, s}];
  }

  std::string first_wrong(const std::vector<measured_action>& row) {
    for (const auto& s : row) {
      if (auto deviation = judge(s); !deviation.empty())
        return name_ + ": " + to_string(s.action, true) + " " + deviation;
    }
    const auto deviation = judge_end();
    return deviation.empty() ? deviation : name_ + " " + deviation;
  }

private:
  /// The counts for the action's stage. \pre the rank hosts the stage
  stage_counts& counts_of(const action& a) {
    return counts_.at({a.direction, a.stage});
  }

  /// The run's index of the k-th microbatch of a direction. Each direction has one half
  /// of every batch.
  int microbatch_of(int direction, int k) const {
    return k / share_ * dims_.microbatches + direction * share_ + k % share_;
  }

  std::string judge(const measured_action& s) {
    if (!counts_.contains({s.action.direction, s.action.stage}))
      return "belongs to another rank";
    if (s.action.op == op::forward)
      counts_of(s.action).forwards = s.part;
    if (s.part)
      return {};
    auto deviation = s.action.op == op::update ? judge_update(s) : judge_pass(s);
    if (!deviation.empty())
      return deviation;
    // A due update may have begun, as forwards need not wait for the update's end. An
    // update need not wait either for a forward that has begun and waits for other
    // ranks.
    const auto& counts = counts_of(s.action);
    const int due = s.action.op == op::forward
                    && static_cast<int>(counts.summed.size())
                         == published::covered(rule_, dims_, counts.updates);
    const int alive = versions_alive(s.action, counts.updates, counts.forwards);
    const bool overtakes = s.action.op == op::update && forwards_wait_;
    if (s.versions_alive != alive
        && s.versions_alive != versions_alive(s.action, counts.updates + due, false)
        && !(overtakes
             && s.versions_alive == versions_alive(s.action, counts.updates, true)))
      return "left " + std::to_string(s.versions_alive)
             + " versions alive, but by the formula " + std::to_string(alive);
    auto& most = versions_[s.action.stage];
    most = std::max(most, s.versions_alive);
    return {};
  }

  std::string judge_pass(const measured_action& s) {
    const auto& a = s.action;
    auto& counts = counts_of(a);
    if (recomputes_ && (a.op == op::recompute || goes_back(a.op)))
      if (auto deviation = judge_recomputation(s, counts); !deviation.empty())
        return deviation;
    if (a.op == op::recompute)
      return recomputes_ ? "" : "is a recomputation, and the run has none";
    const auto split = published::splits(rule_);
    if (a.op == op::backward ? split == published::split::full
                             : a.op != op::forward && split == published::split::none)
      return "and other backwards differ: some are split in I and W, some are not";
    const int next = microbatch_of(a.direction, a.op == op::forward ? counts.forwarded
                                                : goes_back(a.op)   ? counts.returned
                                                                  : counts.backwarded);
    if (a.microbatch != next)
      overtaken_ = true;
    if (overtaken_ && rule_.name != "ampnet") // AMPNet's order follows arrivals
      return "ran where the formula has microbatch " + std::to_string(next);
    const auto flown = counts.in_flight.find(a.microbatch);
    const bool in_flight = flown != counts.in_flight.end();
    if (goes_back(a.op) && (!in_flight || flown->second.returned))
      return "ran before its forward, or twice";
    if (a.op == op::weight_gradient && (!in_flight || !flown->second.returned))
      return "ran before its input gradient";
    if (const auto slot = published::slot(rule_, dims_, a.op, a.stage, a.microbatch)) {
      if (*slot <= last_slot_)
        return "ran after an action with a later slot by the formula";
      last_slot_ = *slot;
    }
    const int version = published::version_read(rule_, dims_, a.stage, a.microbatch)
                          .value_or(counts.updates);
    if (s.version != version)
      return "read version " + std::to_string(s.version) + ", but by the formula "
             + std::to_string(version);
    if (version > counts.updates)
      return "read version " + std::to_string(version) + " before an update made it";
    note_pass(a, version, counts);
    return {};
  }

  void note_pass(const action& a, int version, stage_counts& counts) {
    if (a.op == op::forward) {
      ++counts.forwarded;
      counts.in_flight[a.microbatch] = {version};
      most_held_ = std::max(most_held_, ++held_);
    }
    if (goes_back(a.op)) {
      ++counts.returned;
      counts.in_flight.at(a.microbatch).returned = true;
    }
    if (adds_gradient(a.op)) {
      ++counts.backwarded;
      counts.summed.push_back(a.microbatch);
      counts.summed_read[a.microbatch] =
        counts.in_flight.extract(a.microbatch).mapped().version;
      --held_;
    }
  }

  /// Checks that each backward directly follows the recomputation of its microbatch,
  /// and that the recomputation reads the version of the forward.
  std::string judge_recomputation(const measured_action& s, stage_counts& counts) {
    const auto& a = s.action;
    if (goes_back(a.op))
      return std::exchange(counts.recomputed, std::nullopt) == a.microbatch
               ? ""
               : "was not recomputed right before";
    const auto forward = counts.in_flight.find(a.microbatch);
    if (forward == counts.in_flight.end())
      return "ran before its forward";
    counts.recomputed = a.microbatch;
    return s.version == forward->second.version
             ? ""
             : "read version " + std::to_string(s.version) + ", and its forward "
                 + std::to_string(forward->second.version);
  }

  std::string judge_update(const measured_action& s) {
    auto& counts = counts_of(s.action);
    const int u = counts.updates++;
    const auto summed = std::exchange(counts.summed, {});
    const auto read = std::exchange(counts.summed_read, {});
    if (s.version != u + 1)
      return "made version " + std::to_string(s.version) + " as update "
             + std::to_string(u + 1);
    const int covered = published::covered(rule_, dims_, u);
    if (covered <= 0)
      return "is one update too many";
    const int last = published::last_covered(rule_, dims_, u)
                       .value_or(summed.empty() ? -1 : summed.back());
    if (s.gradients != covered || s.action.microbatch != last)
      return "covered " + std::to_string(s.gradients) + " gradients up to microbatch "
             + std::to_string(s.action.microbatch) + ", but by the formula "
             + std::to_string(covered) + " up to " + std::to_string(last);
    if (static_cast<int>(summed.size()) != covered)
      return "ran with " + std::to_string(summed.size()) + " gradients summed, of "
             + std::to_string(covered);
    int stalest = 0, sum = 0;
    for (const int n : summed) {
      const int stale =
        published::staleness(rule_, dims_, s.action.stage, n).value_or(u - read.at(n));
      stalest = std::max(stalest, stale);
      sum += stale;
    }
    if (s.stalest != stalest || s.staleness != sum)
      return "has staleness " + std::to_string(s.stalest) + " at most and "
             + std::to_string(s.staleness) + " in sum, but by the formula "
             + std::to_string(stalest) + " and " + std::to_string(sum);
    if (const int most = published::max_staleness(rule_, dims_, s.action.stage);
        stalest > most && !overtaken_)
      return "is " + std::to_string(stalest) + " stale, but by the formula at most "
             + std::to_string(most);
    return {};
  }

  /// Returns the number of versions alive: the newest, each version that a microbatch
  /// in flight reads, and each existing version that a later microbatch reads.
  /// \param forwards whether a forward has begun that the ledger already counts
  int versions_alive(const action& a, int newest, bool forwards) {
    const auto& counts = counts_of(a);
    const auto reads = [&](int n) {
      return published::version_read(rule_, dims_, a.stage, n).value_or(newest);
    };
    std::set<int> alive{newest};
    for (const auto& [n, flown] : counts.in_flight)
      alive.insert(reads(n));
    const int total = share_ * dims_.steps;
    if (forwards && counts.forwarded < total)
      alive.insert(reads(microbatch_of(a.direction, counts.forwarded)));
    const int to_come = counts.forwarded + (forwards ? 1 : 0);
    if (to_come < total)
      for (int v = reads(microbatch_of(a.direction, to_come)); v < newest; ++v)
        alive.insert(v);
    return static_cast<int>(alive.size());
  }

  std::string judge_end() {
    const int total = share_ * dims_.steps, updates = published::updates(rule_, dims_);
    for (const auto& [where, counts] : counts_)
      if (counts.forwarded != total || counts.backwarded != total
          || counts.updates != updates)
        return "ended with " + std::to_string(counts.forwarded) + " forwards, "
               + std::to_string(counts.backwarded) + " backwards and "
               + std::to_string(counts.updates)
               + " updates of a stage, but by the formula " + std::to_string(total)
               + ", " + std::to_string(total) + " and " + std::to_string(updates);
    const auto held = published::activations_held(rule_, dims_, rank_);
    const bool bound = rule_.name == "ampnet";
    if (held && (bound ? most_held_ > *held : most_held_ != *held))
      return "held " + std::to_string(most_held_)
             + " activations at most, but by the formula " + std::to_string(*held);
    const bool steady = published::is_steady(rule_, dims_);
    for (const auto& [stage, most] : versions_)
      if (const int kept = published::versions_kept(rule_, dims_, stage);
          steady ? most != kept : most > kept)
        return "kept " + std::to_string(most) + " versions of stage "
               + std::to_string(stage) + ", but by the formula " + std::to_string(kept);
    return {};
  }

  const published::rule& rule_;
  shape dims_;
  int rank_;  // within the rank's pipeline
  int share_; // microbatches of a batch for one direction
  bool recomputes_;
  bool forwards_wait_; // between pieces, for other ranks
  std::map<std::pair<int, int>, stage_counts> counts_; // by direction and stage
  std::string name_;
  std::map<int, int> versions_; // largest number alive, by stage
  std::int64_t last_slot_ = -1;
  bool overtaken_ = false; // whether a microbatch preceded a lower one
  int held_ = 0, most_held_ = 0;
};

// Chimera with forward doubling runs the forwards of two microbatches in adjacent
// slots. Without doubling, one slot between the two stays free.
bool doubles_forwards(const schedule& sch) {
  const auto* const slot = std::get_if<slot_formula>(&sch.order);
  const shape dims{4, 8};
  return sch.name == "chimera" && slot != nullptr
         && (*slot)(op::forward, 0, 1, dims) - (*slot)(op::forward, 0, 0, dims) == 1;
}

} // namespace

std::optional<published::rule> rule_of(const schedule& sch) {
  auto result = published::find(sch.name, {});
  if (!result || directions_of(sch.where) > 2)
    return {};
  result->update_every = sch.update_every;
  result->min_update_frequency = sch.update_every;
  result->vertical_sync = sch.weights.name == "vertical_sync";
  result->stages_a_rank = sch.where.stages_a_rank;
  result->forward_doubling = doubles_forwards(sch);
  if (const auto keys = sch.active_keys())
    result->max_active_keys = *keys;
  return result;
}

std::string first_wrong_entry(const run_plan& plan, const published::rule& paper_rule,
                              const record& ran) {
  for (std::size_t rank = 0; rank < ran.size(); ++rank)
    if (auto deviation =
          row_check{plan, paper_rule, static_cast<int>(rank)}.first_wrong(ran[rank]);
        !deviation.empty())
      return deviation;
  return {};
}

} // namespace troupe
