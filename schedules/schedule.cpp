// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/schedule.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe {

int update_size(const schedule& sch, const shape& dims) {
  return sch.update_every > 0 ? sch.update_every : dims.microbatches;
}

std::optional<int> version_read(const schedule& sch, const shape& dims, int stage,
                                int microbatch) {
  if (!sch.weights.reads)
    return {};
  const int total_index = dims.batches_before * dims.microbatches + microbatch;
  const int version =
    sch.weights.reads(dims, stage, total_index, update_size(sch, dims));
  return std::max(version - versions_before(sch, dims), -dims.older);
}

int versions_before(const schedule& sch, const shape& dims) {
  return dims.batches_before * dims.microbatches / update_size(sch, dims);
}

int microbatches_of_direction(const schedule& sch, const shape& dims) {
  return dims.total() / directions_of(sch.where);
}

int oldest_version_needed(const schedule& sch, const shape& dims, hosted_stage where,
                          int forwarded) {
  if (forwarded >= microbatches_of_direction(sch, dims))
    return no_version_needed;
  const int next = microbatch_of(sch.where, dims, where.direction, forwarded);
  return version_read(sch, dims, where.stage, next).value_or(no_version_needed);
}

namespace {

/// Whether the schedule has functions that order actions, and a local rule admits at
/// least one microbatch.
bool has_order(const schedule& sch) {
  if (const auto* rule = std::get_if<user_rule>(&sch.order); rule && !rule->choose)
    return false;
  if (const auto keys = sch.active_keys())
    return *keys >= 1;
  if (const auto* slots = std::get_if<slot_formula>(&sch.order))
    return static_cast<bool>(*slots);
  if (const auto* programs = std::get_if<explicit_program>(&sch.order))
    return static_cast<bool>(*programs);
  return true;
}

} // namespace

std::string validation_error(const schedule& sch, const shape& dims) {
  if (!sch.where.ranks || !sch.where.host || !sch.where.hosted)
    return "a placement needs functions ranks, host and hosted";
  if (sch.name.empty() || !has_order(sch) || sch.update_every < 0 || sch.most_held < 0)
    return "a schedule needs a name, and an order: a formula for slots, programs, or a "
           "local rule with max_active_keys of at least 1; update_every and most_held "
           "are at least 0";
  for (const auto& [name, count] :
       {std::pair{"stages", dims.stages}, std::pair{"microbatches", dims.microbatches},
        std::pair{"steps", dims.steps}})
    if (count < 1)
      return std::to_string(count) + " " + name + ": a run has at least 1";
  if (dims.stages > most_stages)
    return "a run has at most 1,048,576 stages";
  if (dims.batches_before < 0 || dims.older < 0)
    return "batches_before and older are at least 0";
  if (dims.microbatches * (std::int64_t{dims.batches_before} + dims.steps)
      > std::numeric_limits<int>::max() / 2)
    return "microbatches times steps is at most 1,073,741,823";
  if (!sch.local_rule()
      && std::int64_t{dims.batches_before} * dims.microbatches % update_size(sch, dims)
           != 0)
    return sch.name + " updates every " + std::to_string(update_size(sch, dims))
           + " microbatches: it cannot continue after "
           + std::to_string(std::int64_t{dims.batches_before} * dims.microbatches)
           + " microbatches, within an update";
  if (sch.local_rule() && sch.where.directions > 1)
    return sch.name + " orders stages by arrivals, which needs one direction: its "
           + "placement has " + std::to_string(sch.where.directions);
  if (sch.local_rule() && sch.weights.reads && !sch.weights.flushes)
    return sch.name
           + " orders stages by arrivals, so that no formula gives the versions: "
           + "its weights must be latest or flush";
  if (sch.local_rule() && (sch.most_held > 0 || sch.splits_backward))
    return sch.name + " orders stages by arrivals: it must run whole backwards, "
           + "and max_active_keys must be its only bound on held microbatches";
  if (sch.recomputes != recomputation::none && (sch.local_rule() || !sch.weights.reads))
    return sch.name + " does not keep the weight version that a forward has read, so "
           + "that the forward cannot be recomputed: say --recompute none";
  if (sch.where.stages_a_rank < 1 || dims.stages % sch.where.stages_a_rank != 0)
    return sch.name + " has " + std::to_string(sch.where.stages_a_rank)
           + " stages on each rank: its stages must be a multiple of them";
  if (sch.refuses)
    if (auto error = sch.refuses(dims); !error.empty())
      return error;
  if (dims.microbatches % sch.where.directions != 0)
    return sch.name + " shares a batch out to " + std::to_string(sch.where.directions)
           + " directions: its microbatches must be a multiple of them";
  return {};
}

} // namespace troupe
