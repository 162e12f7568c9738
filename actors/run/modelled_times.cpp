// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/modelled_times.hpp"

#include "actors/meetings/tie_meeting.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

enum kind {
  activation,    // of a stage, from the one before
  gradient,      // of a stage, from the one behind
  shards_met,    // tensor shards have come to a collective
  gathered,      // a layer's parameters
  summed_layer,  // a layer's gradients of a microbatch
  come,          // both directions, to an update
  summed,        // the gradients of an update
  tied,          // both ends' gradients of a tied matrix
  measured,      // every stage's part of a norm
  version_share, // a version, share by share
  whole,         // a version, for the other direction
};

/// The length of a part on a device of its own: other programs take no time of it.
nanoseconds length_of(const measured_action& s) {
  return s.end - s.start - s.off_processor_time;
}

/// Adds the activations and gradients between stages of a pipeline. The first part of
/// an action waits for such milestones, and the last part gives some. A recomputation
/// may wait for the gradient, in place of the backward behind it.
void add_messages(int stages, recomputation recomputes, std::int64_t pipeline,
                  const action& a, bool first, bool last, time_layout::part& to) {
  const bool late = recomputes == recomputation::late;
  const auto message = [&](kind event, int stage) {
    return dependency{event, pipeline * stages + stage, a.microbatch};
  };
  if (a.op == op::forward) {
    if (first && a.stage > 0)
      to.inputs.push_back(message(activation, a.stage));
    if (last && a.stage + 1 < stages)
      to.outputs.push_back(message(activation, a.stage + 1));
  }
  if ((late ? a.op == op::recompute : goes_back(a.op)) && first && a.stage + 1 < stages)
    to.inputs.push_back(message(gradient, a.stage));
  if (goes_back(a.op)) {
    if (last && a.stage > 0)
      to.outputs.push_back(message(gradient, a.stage - 1));
  }
}

} // namespace

modelled_times::modelled_times(const run_plan& plan, moved report)
  : plan_(plan),
    report_(std::move(report)),
    todo_(static_cast<std::size_t>(plan.ranks())),
    layout_(todo_.size(), [this](std::size_t rank, nanoseconds start, nanoseconds end) {
      auto s = std::move(todo_[rank].front());
      todo_[rank].pop_front();
      if (!s)
        return;
      s->start = start;
      s->end = end;
      report_(static_cast<int>(rank), *s);
    }) {
  // nop
}

bool modelled_times::can_model(const run_plan& plan) {
  return plan.mesh[axis::expert] == 1 && updates_are_by(plan, update_by::all_replicas);
}

int modelled_times::directions() const {
  return plan_.directions();
}

/// A stage's number among all stages. A milestone of a group has the number of the
/// group's first stage.
std::int64_t modelled_times::stage_index(position where) const {
  const std::int64_t pipeline =
    std::int64_t{plan_.replica_at(where)} * plan_.mesh[axis::tensor] + where.tensor;
  return pipeline * plan_.dims.stages + where.stage;
}

modelled_times::stage_state& modelled_times::state_of(position where) {
  const auto [entry, is_new] = stages_.try_emplace(stage_index(where));
  auto& stage = entry->second;
  if (!is_new)
    return stage;
  stage.layers = static_cast<int>(buckets_of(plan_, where).size());
  stage.is_tied = has_tied_end(plan_, where);
  if (plan_.work && plan_.work->optimizer.clip > 0) {
    const auto group = norm_group(plan_, where);
    stage.norm_of = stage_index(group.front());
    if (group.size() > 1 || plan_.work->optimizer.scope == clip_scope::network)
      stage.in_norm = static_cast<int>(group.size());
  }
  return stage;
}

void modelled_times::add(int rank, const measured_action& s) {
  const position where{plan_.data_of(rank), s.action.direction, s.action.stage,
                       plan_.shard_of(rank)};
  if (s.expert >= 0) // waits for no other rank
    place_part(rank, s, {length_of(s), {}, {}});
  else if (s.action.op == op::update)
    add_update(rank, where, s);
  else
    add_pass(rank, where, s);
}

void modelled_times::place_part(int rank, const measured_action& s, part p) {
  const bool shown = !s.part || p.length > 0;
  todo_[static_cast<std::size_t>(rank)].push_back(shown ? std::optional{s}
                                                        : std::nullopt);
  layout_.add(static_cast<std::size_t>(rank), std::move(p));
}

void modelled_times::place_moment(int rank, part p) {
  todo_[static_cast<std::size_t>(rank)].emplace_back();
  layout_.add(static_cast<std::size_t>(rank), std::move(p));
}

dependency modelled_times::shard_meeting(position where, int number) const {
  where.tensor = 0;
  return {shards_met, stage_index(where), number, plan_.mesh[axis::tensor],
          plan_.mesh[axis::tensor]};
}

/// A meeting of data replicas for a layer, numbered as each replica counts.
dependency modelled_times::layer_meeting(int kind, position where, int number) const {
  where.data = 0;
  return {kind, stage_index(where), number, plan_.mesh[axis::data],
          plan_.mesh[axis::data]};
}

// The start of a part may both wait for milestones and give one: a layer's gathering
// begins while the layer before is computed on. Then a moment before the part, of no
// length, does the waiting and the giving.
void modelled_times::add_pass(int rank, position where, const measured_action& s) {
  auto& stage = state_of(where);
  const auto& a = s.action;
  const bool gathers =
               shares_out(plan_, shared_out::parameters) && a.op != op::weight_gradient,
             sums = shares_out(plan_, shared_out::gradients) && adds_gradient(a.op);
  const auto pipeline =
    stage_index({where.data, where.direction, 0, where.tensor}) / plan_.dims.stages;
  part now{length_of(s), {}, {}};
  if (!std::exchange(stage.started, true)) {
    add_messages(plan_.dims.stages, plan_.sch.recomputes, pipeline, a, true, false,
                 now);
    if (gathers) {
      now.outputs = {layer_meeting(gathered, where, stage.gathers)};
      place_moment(rank,
                   {0, std::exchange(now.inputs, {}), std::exchange(now.outputs, {})});
    }
  }
  if (s.part && s.ends_in == nothing)
    return; // the action has begun, and waits
  if (std::exchange(stage.meets_shards, false))
    now.inputs.push_back(shard_meeting(where, stage.shard_meetings - 1));
  if (sums && stage.layer == stage.layers) { // the rest waits for all sums
    for (int l = std::max(stage.layers - 2, 0); l < stage.layers; ++l)
      now.inputs.push_back(layer_meeting(summed_layer, where, stage.sums + l));
  } else if ((gathers || sums) && !std::exchange(stage.on_layer, true)) {
    if (gathers)
      now.inputs.push_back(layer_meeting(gathered, where, stage.gathers + stage.layer));
    if (sums && stage.layer >= 2) // which had the same place
      now.inputs.push_back(
        layer_meeting(summed_layer, where, stage.sums + stage.layer - 2));
    if (gathers && stage.layer + 1 < stage.layers) {
      now.outputs = {layer_meeting(gathered, where, stage.gathers + stage.layer + 1)};
      place_moment(rank,
                   {0, std::exchange(now.inputs, {}), std::exchange(now.outputs, {})});
    }
  }
  if ((s.ends_in & shards_meet) != 0) {
    now.outputs.push_back(shard_meeting(where, stage.shard_meetings++));
    stage.meets_shards = true;
  }
  if ((s.ends_in & layer_ends) != 0) {
    if (sums)
      now.outputs.push_back(
        layer_meeting(summed_layer, where, stage.sums + stage.layer));
    ++stage.layer;
    stage.on_layer = false;
  }
  if (!s.part) {
    add_messages(plan_.dims.stages, plan_.sch.recomputes, pipeline, a, false, true,
                 now);
    if (exchanges_at_update(plan_) && adds_gradient(a.op))
      now.outputs.push_back(sum_of(where, update_of(a)));
    stage.gathers += gathers ? stage.layers : 0;
    stage.sums += sums ? stage.layers : 0;
    stage.layer = 0;
    stage.started = stage.on_layer = false;
  }
  place_part(rank, s, std::move(now));
}

/// Microbatches of a data replica that an update covers.
int modelled_times::size_of(int update) const {
  const int size = update_size(plan_.sch, plan_.dims);
  return std::min(size, plan_.dims.total() - update * size);
}

int modelled_times::update_of(const action& a) const {
  return a.microbatch / update_size(plan_.sch, plan_.dims);
}

/// All gradients of an update have been summed, of all data replicas.
dependency modelled_times::sum_of(position where, int update) const {
  where.data = where.direction = 0;
  return {summed, stage_index(where), update, plan_.mesh[axis::data] * size_of(update),
          plan_.mesh[axis::data]};
}

/// All directions have come to an update.
dependency modelled_times::coming_of(position where, int update) const {
  where.direction = 0;
  return {come, stage_index(where), update, directions(), 1};
}

/// A shard has given its gradients of a tied matrix to the other end.
dependency modelled_times::given_by(position where, int update) const {
  const auto takers = tied_peers_of(plan_, where).size();
  return {tied, stage_index(where), update, 1, static_cast<int>(takers)};
}

/// That milestone, if any shard takes it: a share may have nothing of the matrix.
std::vector<dependency> modelled_times::given_of(position where, int update) const {
  const auto tied_gradients = given_by(where, update);
  return tied_gradients.consumers > 0 ? std::vector{tied_gradients}
                                      : std::vector<dependency>{};
}

/// The milestones that the other end of a tied matrix gives.
std::vector<dependency> modelled_times::sent_to(position where, int update) const {
  std::vector<dependency> result;
  for (const auto& peer : tied_peers_of(plan_, where))
    result.push_back(given_by(peer, update));
  return result;
}

/// The milestones that an update's first arithmetic waits for.
std::vector<dependency> modelled_times::gradients_of(position where, int update) const {
  std::vector<dependency> result;
  if (directions() > 1)
    result.push_back(coming_of(where, update));
  if (exchanges_at_update(plan_))
    result.push_back(sum_of(where, update));
  return result;
}

// The first direction makes the version; the other direction waits for the version, and
// copies it.
void modelled_times::add_update(int rank, position where, const measured_action& s) {
  auto& stage = state_of(where);
  const int update = update_of(s.action);
  if (!std::exchange(stage.started_update, true) && directions() > 1)
    place_moment(rank, {0, {}, {coming_of(where, update)}});
  if (s.part && s.ends_in == nothing)
    return; // the update has come, and waits
  auto first = where;
  first.direction = 0;
  const dependency for_others{whole, stage_index(first), update, 1, directions() - 1};
  first.data = 0;
  const dependency version{version_share, stage_index(first), update,
                           plan_.mesh[axis::data], plan_.mesh[axis::data]},
    norm{measured, stage.norm_of, update, stage.in_norm, stage.in_norm};
  part now{length_of(s), {}, {}};
  auto first_direction = where;
  first_direction.direction = 0;
  const auto before_norm =
    stage.is_tied ? sent_to(first_direction, update) : gradients_of(where, update);
  std::vector<dependency> when_whole;
  if (!s.part && where.direction == 0 && directions() > 1)
    when_whole.push_back(for_others);
  if (!s.part)
    stage.started_update = false;
  if (where.direction > 0)
    now.inputs = {for_others};
  else if (s.ends_in == tie_given)
    now = {now.length, gradients_of(where, update), given_of(first_direction, update)};
  else if (s.ends_in == norm_measured)
    now = {now.length, before_norm, {norm}};
  else if (s.ends_in != version_made && gathers_at_update(plan_))
    now.inputs = {version};
  else if (stage.in_norm > 0)
    now.inputs = {norm};
  else
    now.inputs = before_norm;
  if (s.ends_in != version_made) {
    now.outputs.insert(now.outputs.end(), when_whole.begin(), when_whole.end());
    return place_part(rank, s, std::move(now));
  }
  now.outputs = {version};
  place_part(rank, s, std::move(now));
  if (!s.part) // the shares of other replicas were there already
    place_moment(rank, {0, {version}, std::move(when_whole)});
}

void modelled_times::check_end() const {
  if (const auto rank = layout_.waiting())
    throw std::logic_error("the model of a run stops at rank " + std::to_string(*rank));
  if (const auto left = layout_.open(); left > 0)
    throw std::logic_error("the model of a run has " + std::to_string(left)
                           + " milestones that no rank has waited for");
}

} // namespace troupe
