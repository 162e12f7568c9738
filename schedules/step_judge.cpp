// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/step_judge.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

using state = rehearsed_run;

/// An error if an action cannot belong to this rank.
std::optional<reproach> step_judge::misplaced(const action& a, int rank) const {
  const auto wrong = [&a](const std::string& what, std::string mend = {}) {
    return reproach{to_string(a, true) + " " + what, std::move(mend)};
  };
  if (a.stage < 0 || a.stage >= dims_.stages || a.microbatch < 0
      || a.microbatch >= dims_.total() || a.direction < 0
      || a.direction >= directions_of(schedule_.where))
    return wrong("is not in this run", "leave it out");
  if (const int host = rank_of(schedule_.where, dims_, {a.direction, a.stage});
      host != rank) {
    const auto there = "rank " + std::to_string(host);
    return wrong("belongs on " + there, "move it to " + there);
  }
  if (a.what != op::update
      && a.direction != direction_of(schedule_.where, dims_, a.microbatch))
    return wrong("is of a microbatch of the other direction");
  return {};
}

/// An error if two actions cannot be a pair. \param a the next action of the rank
std::optional<reproach> step_judge::wrong_pair(const action& a, const action* behind,
                                               int rank) const {
  if (a.pair == in_pair::second && !so_far_.within_pair(rank))
    return reproach{to_string(a, true) + " is the second of a pair that has no first"};
  if (a.pair != in_pair::first)
    return {};
  if (behind == nullptr || behind->pair != in_pair::second)
    return reproach{to_string(a, true) + " is the first of a pair that has no second"};
  const auto both = to_string(a, true) + " and " + to_string(*behind, true);
  if (a.what != op::forward || !goes_back(behind->what))
    return reproach{both
                    + " are no pair: a forward and a backward or input gradient "
                      "run as one"};
  if (auto wrong = misplaced(*behind, rank))
    return wrong;
  if (const auto maker = so_far_.maker_of(*behind);
      maker && maker->what == op::forward && maker->stage == a.stage
      && maker->microbatch == a.microbatch)
    return reproach{both + " cannot be one: the second waits for what the first makes",
                    "run them one after the other"};
  return {};
}

std::optional<reproach> step_judge::objection(const action& a, const action* behind,
                                              int rank) const {
  const auto wrong = [&a](const std::string& what, std::string mend = {}) {
    return reproach{to_string(a, true) + " " + what, std::move(mend)};
  };
  if (auto bad = misplaced(a, rank))
    return bad;
  if (auto bad = wrong_pair(a, behind, rank))
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
          + to_string({op::input_gradient, a.direction, a.stage, a.microbatch}, true));
    return out_of_order(a);
  case op::update:
    return bad_update(a);
  case op::recompute:
    return wrong("is no step of a program: --recompute puts it there", "leave it out");
  }
  return {};
}

/// An error if a forward exceeds the rank's limit, needs a missing version, or comes
/// too late.
std::optional<reproach> step_judge::unheld(const action& a, int rank) const {
  const auto& stage = so_far_.stage({a.direction, a.stage});
  if (const int held = so_far_.held(rank);
      schedule_.most_held > 0 && held >= schedule_.most_held)
    return reproach{to_string(a, true) + " would be the " + std::to_string(held + 1)
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
    return reproach{after + "samples enter stage 0 in the order of their microbatches",
                    "move it before that"};
  if (version && schedule_.asynchronous())
    return reproach{after
                      + "without a flush a stage forwards microbatches in order, as "
                        "versions are kept for those that are to come",
                    "move it before that"};
  return {};
}

std::optional<reproach> step_judge::out_of_order(const action& a) const {
  const int last = so_far_.stage({a.direction, a.stage}).last_summed;
  if (a.microbatch > last || schedule_.sums_in_any_order)
    return {};
  return reproach{to_string(a, true) + " is summed after microbatch "
                    + std::to_string(last),
                  "move it before that: sums in another order have other bits"};
}

std::optional<reproach> step_judge::bad_update(const action& a) const {
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
  return reproach{
    what + ": " + name + " does not come before it",
    "put " + name + " before it on rank "
      + std::to_string(rank_of(schedule_.where, dims_, {a.direction, a.stage}))
      + std::string{says_so}};
}

/// The first missing action for the lowest microbatch whose weight gradient the stage
/// has not computed; absent if none is missing.
std::optional<action> step_judge::first_missing(hosted_stage where) const {
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

} // namespace troupe
