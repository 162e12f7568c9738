// SPDX-License-Identifier: BSD-3-Clause
#include "actors/updates/update_pieces.hpp"

#include "actors/meetings/bucket_meeting.hpp"
#include "actors/meetings/direction_meeting.hpp"
#include "actors/meetings/norm_meeting.hpp"
#include "actors/meetings/server_meeting.hpp"
#include "actors/meetings/tie_meeting.hpp"
#include "actors/meetings/user_meeting.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"

#include <utility>

namespace troupe {

namespace {

constexpr meeting_step gradients{meeting_kind::directions,
                                 direction_meeting::all_gradients},
  sums{meeting_kind::sums, bucket_meeting::all_buckets},
  user_gradients{meeting_kind::user, user_meeting::exchanged},
  norm{meeting_kind::norm, norm_meeting::factor_known},
  tie{meeting_kind::tie, tie_meeting::gradients_added},
  answers{meeting_kind::servers, server_meeting::answered},
  gathers{meeting_kind::gathers, bucket_meeting::all_buckets};

/// A piece that only waits and does no work.
piece wait_for(meeting_step step) {
  return {.share = 0, .costs = false, .needs = {step}};
}

} // namespace

update_steps steps_of(const run_plan& plan, position where) {
  update_steps result{.tied = has_tied_end(plan, where),
                      .servers = updates_are_by(plan, update_by::servers),
                      .sums = sums_at_update(plan),
                      .has_user_exchange =
                        exchanges_at_update(plan) && plan.user_exchange,
                      .gathers = gathers_at_update(plan),
                      .directions = plan.directions()};
  if (plan.work && plan.work->optimizer.clip > 0)
    result.norm = norm_group(plan, where).size() > 1 || result.servers
                  || plan.work->optimizer.scope == clip_scope::network;
  result.measures = result.norm || result.servers;
  return result;
}

woven_action update_pieces(const update_steps& steps, int direction, update_work work) {
  woven_action result;
  const auto add = [&](piece next) -> piece& {
    result.pieces.push_back(std::move(next));
    return result.pieces.back();
  };
  if (direction > 0) {
    auto& copy = add({.run = std::move(work.apply)});
    copy.yields = true;
    copy.needs = {{meeting_kind::directions, direction_meeting::version_at(direction)}};
    return result;
  }
  meeting_steps needed{gradients};
  if (steps.sums)
    needed.push_back(sums);
  const bool yields = steps.directions > 1 && !steps.measures;
  // Once all directions are added, the sum is sent to others.
  const auto add_send = [&](meeting_step step, std::function<void()> run) -> piece& {
    auto& sending =
      add({.share = 0, .run = std::move(run), .costs = false, .needs = needed});
    sending.yields = yields;
    sending.ends_in = needed = {step};
    return sending;
  };
  if (steps.has_user_exchange)
    add_send(user_gradients, std::move(work.add));
  if (steps.tied)
    add_send(tie, std::move(work.copy_tied)).end = tie_given;
  if (steps.measures) {
    auto& measure = add(
      {.share = 0, .run = std::move(work.measure), .costs = false, .needs = needed});
    measure.ends_in = {steps.norm ? norm : answers};
    measure.end = norm_measured;
    needed = measure.ends_in;
  }
  if (steps.norm && steps.servers) {
    add(wait_for(norm)).ends_in = {answers};
    needed = {answers};
  }
  if (steps.servers) {
    add(wait_for(answers));
    return result;
  }
  auto& apply = add({.run = std::move(work.apply), .needs = needed});
  apply.yields = yields && !steps.tied && !steps.has_user_exchange;
  if (steps.gathers) {
    apply.ends_in = {gathers};
    apply.end = version_made;
    add(wait_for(gathers));
  }
  return result;
}

} // namespace troupe
