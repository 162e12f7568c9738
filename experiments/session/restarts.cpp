// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/restarts.hpp"

#include "actors/nodes/roll_call.hpp"

#include <utility>

namespace troupe {

namespace {

constexpr const char* advice = "; a new start does not help: correct this, or leave "
                               "the node out of --nodes, and continue with --resume";

/// Whether a failure would be the same at each new start. Nodes may accept a refused
/// run later, when missing nodes come back; different data never becomes equal.
bool is_lasting(const node_failure& wrong, bool has_all_nodes) {
  return dynamic_cast<const nodes_differ*>(&wrong) != nullptr
         || (has_all_nodes && dynamic_cast<const lasting_refusal*>(&wrong) != nullptr);
}

} // namespace

std::string restart_limit::sentence(bool has_begun) const {
  return "; " + std::to_string(fruitless_)
         + " starts in a row have brought the run no further than step "
         + std::to_string(furthest_)
         + (has_begun
              ? ": a smaller --checkpoint-every, or --keep-steps, loses less of it "
                "each time"
              : ": when all nodes answer and none plays another run, go on with "
                "--resume");
}

run_result restarts::perform(run_plan plan, const means& by, const new_start& again) {
  restart_limit limit{plan.dims.before};
  std::string refused; // the reason why the previous start failed
  bool begins_again = false;
  for (;;) {
    attempt last;
    try {
      last = by.start(plan);
      nodes_have_answered_ = true;
      refused.clear();
    } catch (const node_failure& wrong) {
      const bool lasts = is_lasting(wrong, by.has_all_nodes());
      if (lasts && begins_again)
        throw lasting_refusal{wrong.what() + std::string{advice}};
      nodes_have_answered_ = nodes_have_answered_ || wrong.is_loss;
      if (lasts || !again || !nodes_have_answered_)
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
      result.failure += limit.sentence(refused.empty());
      return std::move(result);
    }
    if (!by.find_nodes(plan)) {
      if (!by.is_interrupted())
        result.failure += "; too few nodes answer to start it again";
      return std::move(result);
    }
    plan = again(result);
    begins_again = true;
    limit.start(plan.dims.before);
  }
}

} // namespace troupe
