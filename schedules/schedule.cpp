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

/// Returns one sentence if no schedule of this form allows the sizes, else an empty
/// text.
std::string form_error(const schedule& sch, const shape& dims) {
  if (!sch.where.ranks || !sch.where.host || !sch.where.hosted)
    return "a placement needs functions ranks, host and hosted";
  if (sch.name.empty() || !has_order(sch) || sch.update_every < 0 || sch.most_held < 0)
    return "a schedule needs a name, update_every and most_held of at least 0, and an "
           "order: slots, programs, or a local rule with max_active_keys above 0";
  for (const auto& [name, count] :
       {std::pair{"stages", dims.stages}, std::pair{"microbatches", dims.microbatches},
        std::pair{"steps", dims.steps}})
    if (count < 1)
      return std::to_string(count) + " " + name + " are too few: a run has at least 1";
  if (dims.stages > most_stages)
    return "too many stages: a run has at most 1,048,576";
  if (dims.batches_before < 0 || dims.older < 0)
    return "batches_before or older is below 0: both are at least 0";
  if (dims.microbatches * (std::int64_t{dims.batches_before} + dims.steps)
      > std::numeric_limits<int>::max() / 2)
    return "microbatches times steps is too large: at most 1,073,741,823 are allowed";
  if (!sch.local_rule()
      && std::int64_t{dims.batches_before} * dims.microbatches % update_size(sch, dims)
           != 0)
    return sch.name + " updates every " + std::to_string(update_size(sch, dims))
           + " microbatches, and cannot continue within an update, after "
           + std::to_string(std::int64_t{dims.batches_before} * dims.microbatches)
           + " microbatches";
  if (sch.local_rule() && sch.where.directions > 1)
    return sch.name
           + " has a local rule, which needs a placement with one direction, not "
           + std::to_string(sch.where.directions);
  if (sch.local_rule() && sch.weights.reads && !sch.weights.flushes)
    return sch.name
           + " has a local rule, which allows no formula for weight versions: set "
           + "weights to latest or flush";
  if (sch.local_rule() && sch.weights.flushes
      && update_size(sch, dims) != dims.microbatches)
    return sch.name + " flushes after each batch, and updates every "
           + std::to_string(sch.update_every)
           + " microbatches: set update_every to 0, or weights to latest";
  if (sch.local_rule() && (sch.most_held > 0 || sch.splits_backward))
    return sch.name
           + " has a local rule, which needs whole backwards and no bound on held "
           + "microbatches but max_active_keys: set splits_backward to false and "
             "most_held to 0";
  if (sch.recomputes != recomputation::none && (sch.local_rule() || !sch.weights.reads))
    return sch.name
           + " does not keep the weight version that a forward has read, and no "
           + "forward can be recomputed: say --recompute none";
  if (sch.where.stages_a_rank < 1 || dims.stages % sch.where.stages_a_rank != 0)
    return sch.name + " has " + std::to_string(sch.where.stages_a_rank)
           + " stages on each rank, but " + std::to_string(dims.stages)
           + " stages are no multiple: give a multiple of "
           + std::to_string(sch.where.stages_a_rank);
  return {};
}

/// Returns one sentence if the schedule's own rules do not allow the sizes, else an
/// empty text.
std::string size_error(const schedule& sch, const shape& dims) {
  if (sch.refuses)
    if (auto error = sch.refuses(dims); !error.empty())
      return error;
  if (dims.microbatches % sch.where.directions != 0)
    return sch.name + " divides a batch between " + std::to_string(sch.where.directions)
           + " directions, and needs a number of microbatches that is a multiple of "
           + std::to_string(sch.where.directions);
  return {};
}

/// Returns the smallest allowed number of microbatches above `dims.microbatches`; 0 if
/// none is allowed. No schedule of the catalog needs more than 2 for each stage, or
/// than the next multiple of the directions.
int next_allowed_microbatches(const schedule& sch, shape dims) {
  const int most = std::max(2 * dims.stages, dims.microbatches + sch.where.directions);
  while (++dims.microbatches <= most)
    if (validation_error(sch, dims).empty())
      return dims.microbatches;
  return 0;
}

} // namespace

std::string validation_error(const schedule& sch, const shape& dims) {
  auto error = form_error(sch, dims);
  return error.empty() ? size_error(sch, dims) : error;
}

std::string validation_error(const schedule& sch, const shape& dims, int replicas) {
  auto error = validation_error(sch, dims);
  if (error.empty() || !form_error(sch, dims).empty())
    return error;
  const int allowed = next_allowed_microbatches(sch, dims);
  if (allowed == 0)
    return error;
  error += ": say --microbatches " + std::to_string(std::int64_t{allowed} * replicas);
  if (replicas > 1)
    error += ", " + std::to_string(allowed) + " for each data replica";
  return error;
}

} // namespace troupe
