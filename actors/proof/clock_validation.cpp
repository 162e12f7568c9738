// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/clock_validation.hpp"

#include "actors/proof/published_order.hpp"
#include "plan/costs.hpp"
#include "plan/replica_rules.hpp"
#include "plan/stage_layers.hpp"

#include <cmath>
#include <optional>
#include <vector>

namespace troupe {

namespace {

/// Joins the pieces of each action of a row; pieces of an action are adjacent.
std::vector<published::recorded_action>
whole_actions(const std::vector<measured_action>& row) {
  std::vector<published::recorded_action> result;
  bool goes_on = false;
  for (const auto& s : row) {
    if (!goes_on)
      result.push_back({s.action.op, s.action.microbatch, s.start, s.end});
    result.back().end = s.end;
    result.back().gradients = s.gradients;
    goes_on = s.part;
  }
  return result;
}

/// The modelled times of the actions of one stage of a data replica, in nanoseconds.
class stage_costs {
public:
  stage_costs(const run_plan& plan, int data, int stage)
    : plan_(plan), data_(data), stage_(stage) {
    if (!plan.work)
      return;
    layers_ = slices_of(plan, {data, 0, stage});
    for (const auto& l : layers_->whole().layers())
      update_ += update_operations(l->bucket());
  }

  nanoseconds time_of(op operation, int microbatch) const {
    work done{.kind = static_cast<int>(operation), .stage = stage_};
    done.operations = operation == op::update ? update_ : forward(microbatch);
    if (operation != op::update)
      done.size = plan_.part_of_largest(data_, microbatch);
    if (operation == op::backward)
      done.operations *= 2;
    auto takes = plan_.machine.cost(done);
    if (goes_back(operation) && plan_.recomputes())
      takes += time_of(op::recompute, microbatch);
    if (plan_.machine.slowdowns.empty())
      return takes;
    return static_cast<nanoseconds>(
      std::llround(static_cast<double>(takes)
                   * plan_.machine.slowdowns[static_cast<std::size_t>(data_)]));
  }

private:
  /// Floating-point operations of a microbatch's forward; 0 in a simulation.
  double forward(int microbatch) const {
    if (!layers_)
      return 0;
    return layers_->at_length(plan_.length_of(data_, microbatch)).operations()
           * static_cast<double>(plan_.samples_of(data_, microbatch));
  }

  const run_plan& plan_;
  int data_, stage_;
  std::optional<slices_by_length<float>> layers_;
  double update_ = 0; // floating-point operations of an update
};

/// Returns the first action whose recorded time differs from the modelled time, as a
/// sentence; empty if none does.
std::string first_wrong_length(const stage_costs& costs, int stage,
                               const std::vector<published::recorded_action>& row) {
  for (const auto& a : row)
    if (const auto takes = costs.time_of(a.operation, a.microbatch);
        a.end - a.start != takes)
      return to_string({a.operation, 0, stage, a.microbatch}, true) + " took "
             + std::to_string(a.end - a.start) + " ns; its cost is "
             + std::to_string(takes);
  return {};
}

/// The time of every action of one kind, in nanoseconds; absent if two actions differ.
std::optional<nanoseconds> common_cost(const run_plan& plan, op operation) {
  std::optional<nanoseconds> result;
  for (int d = 0; d < plan.mesh[axis::data]; ++d)
    for (int s = 0; s < plan.dims.stages; ++s) {
      const stage_costs costs{plan, d, s};
      for (int n = 0; n < plan.dims.microbatches; ++n) {
        const auto takes = costs.time_of(operation, n);
        if (result.value_or(takes) != takes)
          return {};
        result = takes;
      }
    }
  return result;
}

/// Whether a pair of a forward and a backward takes the sum of both times.
bool pairs_cost_both(const run_plan& plan) {
  for (int s = 0; s < plan.dims.stages; ++s) {
    const work forward{.kind = static_cast<int>(op::forward), .stage = s},
      backward{.kind = static_cast<int>(op::backward), .stage = s};
    auto combined = forward;
    combined.also = {{backward.kind, s}};
    if (plan.machine.cost(combined)
        != plan.machine.cost(forward) + plan.machine.cost(backward))
      return false;
  }
  return true;
}

} // namespace

bool choices_can_be_judged(const run_plan& plan) {
  return plan.machine.clock == clock_kind::virtual_time
         && plan.machine.links.slowest().bytes_per_second <= 0;
}

std::string first_wrong_choice(const run_plan& plan, const published::rule& paper_rule,
                               const record& ran, nanoseconds doubt) {
  const bool exact = choices_can_be_judged(plan);
  const bool by_servers = updates_are_by(plan, update_by::servers);
  const bool has_experts = plan.work && !plan.work->whole.experts.empty();
  for (int d = 0; d < plan.mesh[axis::data]; ++d) {
    std::vector<std::vector<published::recorded_action>> stages;
    std::vector<stage_costs> costs;
    for (int s = 0; s < plan.dims.stages; ++s) {
      const auto rank = static_cast<std::size_t>(plan.rank_of({d, 0, s}));
      stages.push_back(whole_actions(ran[rank]));
      costs.emplace_back(plan, d, s);
    }
    published::recorded_times times{
      .latency = nullptr, .updates_wait = by_servers, .doubt = doubt};
    if (exact)
      times.latency = [&plan, d](op operation, int stage, int) {
        const int to = operation == op::forward ? stage + 1 : stage - 1;
        return plan.machine.links
          .between_ranks(plan.rank_of({d, 0, stage}), plan.rank_of({d, 0, to}))
          .latency;
      };
    auto deviation =
      published::first_breach_of_ampnet(paper_rule, plan.dims, stages, times);
    // The time of experts and servers is not the stage's alone, and is not checked.
    for (std::size_t s = 0;
         s < stages.size() && deviation.empty() && exact && !by_servers && !has_experts;
         ++s)
      deviation = first_wrong_length(costs[s], static_cast<int>(s), stages[s]);
    if (!deviation.empty())
      return plan.mesh[axis::data] > 1
               ? "data replica " + std::to_string(d) + ": " + deviation
               : deviation;
  }
  return {};
}

std::string first_wrong_time(const run_plan& plan, const published::rule& paper_rule,
                             const measures& ran) {
  const bool in_whole = plan.mesh[axis::tensor] == 1
                        && !shares_out(plan, shared_out::gradients)
                        && (!plan.work || plan.work->whole.experts.empty());
  const bool links_take_time = plan.machine.links.slowest() != link_cost{};
  if (plan.machine.clock == clock_kind::real || !in_whole || links_take_time
      || plan.machine.sums_take_time()
      || !updates_are_by(plan, update_by::all_replicas))
    return {};
  if (plan.uneven || plan.sch.recomputes == recomputation::ahead
      || (plan.work && plan.work->whole.tied())) // both ends wait for each other
    return {};                                   // no paper has a time for such runs
  const auto forward = common_cost(plan, op::forward),
             backward = common_cost(plan, op::backward),
             input = common_cost(plan, op::input_gradient),
             weight = common_cost(plan, op::weight_gradient),
             update = common_cost(plan, op::update);
  if (!forward || !backward || !input || !weight || update != 0
      || !pairs_cost_both(plan))
    return {};
  const auto batch = published::time_of_batch(paper_rule, plan.dims,
                                              {*forward, *backward, *input, *weight});
  if (!batch)
    return {};
  const auto describe = [](nanoseconds is, nanoseconds should_be) {
    return std::to_string(is) + " ns, by the formula " + std::to_string(should_be);
  };
  const bool clips_together = plan.work && plan.work->optimizer.clip > 0
                              && plan.work->optimizer.scope == clip_scope::network;
  const auto [makespan, idle, at_ends] =
    published::times(*batch, plan.dims.steps, clips_together);
  if (ran.makespan != makespan)
    return "the run took " + describe(ran.makespan, makespan);
  const auto all_idle = ran.idle();
  for (std::size_t rank = 0; rank < all_idle.size(); ++rank)
    if (all_idle[rank] != idle)
      return "rank " + std::to_string(rank) + " was idle for "
             + describe(all_idle[rank], idle);
  return {};
}

} // namespace troupe
