// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/action_validator.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

using state = dry_run;

/// An error if an action cannot belong to this rank.
std::optional<step_error> action_validator::placement_error(const action& a,
                                                            int rank) const {
  const auto error = [&a](const std::string& text, std::string fix = {}) {
    return step_error{to_string(a, true) + " " + text, std::move(fix)};
  };
  if (a.stage < 0 || a.stage >= dims_.stages || a.microbatch < 0
      || a.microbatch >= dims_.total() || a.direction < 0
      || a.direction >= directions_of(schedule_.where))
    return error("is outside the run (stages: " + std::to_string(dims_.stages)
                   + ", microbatches: " + std::to_string(dims_.total())
                   + ", directions: " + std::to_string(directions_of(schedule_.where))
                   + ")",
                 "leave " + to_string(a, true) + " out");
  if (const int host = rank_of(schedule_.where, dims_, {a.direction, a.stage});
      host != rank) {
    const auto host_name = "rank " + std::to_string(host);
    return error("belongs on " + host_name,
                 "move " + to_string(a, true) + " to " + host_name);
  }
  if (a.op != op::update
      && a.direction != direction_of(schedule_.where, dims_, a.microbatch))
    return error("is of a microbatch of the other direction");
  return {};
}

/// An error if two actions cannot be a pair. \param a the next action of the rank
std::optional<step_error>
action_validator::pair_error(const action& a, const action* following, int rank) const {
  if (a.pair == in_pair::second && !so_far_.within_pair(rank))
    return step_error{to_string(a, true)
                      + " is the second of a pair that has no first"};
  if (a.pair != in_pair::first)
    return {};
  if (following == nullptr || following->pair != in_pair::second)
    return step_error{to_string(a, true)
                      + " is the first of a pair that has no second"};
  const auto pair_name = to_string(a, true) + " and " + to_string(*following, true);
  if (a.op != op::forward || !goes_back(following->op))
    return step_error{pair_name
                      + " are no pair: a forward and a backward or input gradient "
                        "run as one"};
  if (auto error = placement_error(*following, rank))
    return error;
  if (const auto maker = so_far_.maker_of(*following);
      maker && maker->op == op::forward && maker->stage == a.stage
      && maker->microbatch == a.microbatch)
    return step_error{
      pair_name
        + " cannot run as a pair: the second action needs the output of the first",
      "run the two actions one after the other"};
  return {};
}

std::optional<step_error>
action_validator::validate(const action& a, const action* following, int rank) const {
  const auto error = [&a](const std::string& text, std::string fix = {}) {
    return step_error{to_string(a, true) + " " + text, std::move(fix)};
  };
  if (auto bad = placement_error(a, rank))
    return bad;
  if (auto bad = pair_error(a, following, rank))
    return bad;
  const auto done = so_far_.done(a.stage, a.microbatch);
  switch (a.op) {
  case op::forward:
    return (done & state::f) != 0
             ? error("comes twice", "leave the second " + to_string(a, true) + " out")
             : capacity_error(a, rank);
  case op::backward:
  case op::input_gradient:
    if ((done & state::dx) != 0)
      return error("comes twice", "leave the second " + to_string(a, true) + " out");
    if ((done & state::f) == 0)
      return error(
        "comes before its forward",
        "move " + to_string(a, true) + " after "
          + to_string({op::forward, a.direction, a.stage, a.microbatch}, true));
    return a.op == op::backward ? order_error(a) : std::nullopt;
  case op::weight_gradient:
    if ((done & state::dw) != 0)
      return error("comes twice", "leave the second " + to_string(a, true) + " out");
    if ((done & state::dx) == 0)
      return error(
        "comes before its input gradient",
        "move " + to_string(a, true) + " after "
          + to_string({op::input_gradient, a.direction, a.stage, a.microbatch}, true));
    return order_error(a);
  case op::update:
    return update_error(a);
  case op::recompute:
    return error("is no action of a program: --recompute adds recomputations",
                 "leave " + to_string(a, true) + " out");
  }
  return {};
}

/// An error if a forward exceeds the rank's limit, needs a missing version, or comes
/// too late.
std::optional<step_error> action_validator::capacity_error(const action& a,
                                                           int rank) const {
  const auto& stage = so_far_.stage({a.direction, a.stage});
  if (const int held = so_far_.held(rank);
      schedule_.most_held > 0 && held >= schedule_.most_held)
    return step_error{to_string(a, true) + " would make the rank hold "
                        + std::to_string(held + 1)
                        + " microbatches of a stage, and the rank may hold "
                        + std::to_string(schedule_.most_held),
                      "run a backward before " + to_string(a, true)};
  const auto version = version_read(schedule_, dims_, a.stage, a.microbatch);
  if (version && *version > stage.versions)
    return step_error{
      to_string(a, true) + " reads version " + std::to_string(*version)
        + ", but this stage has made only " + std::to_string(stage.versions),
      "move " + to_string(a, true) + " after the update that makes version "
        + std::to_string(*version) + ", or choose an older version in the weight rule"};
  if (stage.newest_forwarded < a.microbatch)
    return {};
  const auto prefix = to_string(a, true) + " comes after F"
                      + std::to_string(stage.newest_forwarded) + ": ";
  const auto fix =
    "move " + to_string(a, true) + " before F" + std::to_string(stage.newest_forwarded);
  if (a.stage == 0)
    return step_error{
      prefix + "samples enter stage 0 in the order of their microbatches", fix};
  if (version && schedule_.asynchronous())
    return step_error{
      prefix
        + "without a flush a stage forwards microbatches in order, as the "
          "stage keeps versions only for later microbatches",
      fix};
  return {};
}

std::optional<step_error> action_validator::order_error(const action& a) const {
  const int last = so_far_.stage({a.direction, a.stage}).last_summed;
  if (a.microbatch > last || schedule_.sums_in_any_order)
    return {};
  return step_error{
    to_string(a, true) + " is summed after microbatch " + std::to_string(last)
      + ", but a stage sums gradients in the order of their microbatches",
    "move " + to_string(a, true) + " before the gradient of microbatch "
      + std::to_string(last)};
}

std::optional<step_error> action_validator::update_error(const action& a) const {
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
    return step_error{to_string(a, true) + " covers gradients up to microbatch " + last,
                      "name the update U" + last};
  }
  const char* const says_so =
    schedule_.asynchronous()
      ? ", or set update_every to the number of gradients that updates cover"
      : "";
  auto text = to_string(a, true) + " covers " + std::to_string(stage.summed)
              + (stage.summed == 1 ? " gradient" : " gradients") + " instead of "
              + std::to_string(std::max(expected, 0));
  if (stage.summed >= expected)
    return step_error{std::move(text), "put an update after every "
                                         + std::to_string(whole)
                                         + " of a stage's gradients" + says_so};
  const auto lacks = first_missing({a.direction, a.stage});
  if (!lacks)
    return step_error{std::move(text)};
  const auto name = to_string(*lacks, true);
  return step_error{
    text + ": " + name + " does not come before the update",
    "put " + name + " before the update on rank "
      + std::to_string(rank_of(schedule_.where, dims_, {a.direction, a.stage}))
      + std::string{says_so}};
}

/// The first missing action for the lowest microbatch whose weight gradient the stage
/// has not computed; absent if none is missing.
std::optional<action> action_validator::first_missing(hosted_stage where) const {
  for (int m = 0; m < dims_.total(); ++m) {
    const auto done = so_far_.done(where.stage, m);
    if (direction_of(schedule_.where, dims_, m) != where.direction
        || (done & state::dw) != 0)
      continue;
    const auto operation = (done & state::f) == 0    ? op::forward
                           : (done & state::dx) == 0 ? op::backward
                                                     : op::weight_gradient;
    return action{operation, where.direction, where.stage, m};
  }
  return {};
}

} // namespace troupe
