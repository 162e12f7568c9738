// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/restarts.hpp"

#include "actors/nodes/roll_call.hpp"

#include <utility>

namespace troupe {

std::string restart_limit::sentence() const {
  return "; " + std::to_string(fruitless_)
         + " starts in a row have brought the run no further than step "
         + std::to_string(furthest_)
         + ": a smaller --checkpoint-every, or --keep-steps, loses less of it each "
           "time";
}

run_result restarts::perform(run_plan plan, const means& by, const new_start& again) {
  restart_limit limit{plan.dims.before};
  std::string refused; // why the start before did not begin
  for (;;) {
    attempt last;
    try {
      last = by.start(plan);
      nodes_have_answered_ = true;
      refused.clear();
    } catch (const nodes_differ&) { // at no start will they be equal
      throw;
    } catch (const node_failure& wrong) {
      nodes_have_answered_ = nodes_have_answered_ || wrong.is_loss;
      if (!again || !nodes_have_answered_)
        throw;
      if (refused == wrong.what())
        by.wait();
      refused = wrong.what();
      last.has_lost = true;
      last.result.how = by.is_interrupted() ? ending::interrupted : ending::failed;
      last.result.failure = wrong.what();
    }
    has_lost_ = has_lost_ || last.has_lost;
    auto& result = last.result;
    if (!again || !last.has_lost || result.how != ending::failed)
      return std::move(result);
    if (limit.is_reached()) {
      result.failure += limit.sentence();
      return std::move(result);
    }
    if (!by.find_nodes(plan)) {
      if (!by.is_interrupted())
        result.failure += "; too few nodes answer to start it again";
      return std::move(result);
    }
    plan = again(result);
    limit.start(plan.dims.before);
  }
}

} // namespace troupe
