// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/restarts.hpp"

#include "actors/nodes/node_registry.hpp"

#include <utility>

namespace troupe {

namespace {

constexpr const char* advice = "; no restart can succeed: correct the fault, or leave "
                               "the node out of --nodes, and continue with --resume";

/// Whether a failure would be the same at each new start. Nodes may accept a refused
/// run later, when missing nodes come back; different data never becomes equal.
bool is_lasting(const node_failure& error, bool has_all_nodes) {
  return dynamic_cast<const nodes_differ*>(&error) != nullptr
         || (has_all_nodes && dynamic_cast<const lasting_refusal*>(&error) != nullptr);
}

} // namespace

std::string restart_limit::sentence(bool has_begun) const {
  return "; " + std::to_string(fruitless_) + " starts in a row have not passed step "
         + std::to_string(furthest_)
         + (has_begun ? ": give a smaller --checkpoint-every, or --keep-steps, to lose "
                        "fewer steps with a node"
                      : ": when all nodes answer and are idle, continue with "
                        "--resume");
}

run_result restarts::perform(run_plan plan, const start_functions& functions,
                             const new_start& again) {
  restart_limit limit{plan.dims.batches_before};
  std::string refused; // the reason why the previous start failed
  bool begins_again = false;
  for (;;) {
    attempt last;
    try {
      last = functions.start(plan);
      nodes_have_answered_ = true;
      refused.clear();
    } catch (const node_failure& error) {
      const bool lasts = is_lasting(error, functions.has_all_nodes());
      if (lasts && begins_again)
        throw lasting_refusal{error.what() + std::string{advice}};
      nodes_have_answered_ = nodes_have_answered_ || error.is_loss;
      if (lasts || !again || !nodes_have_answered_)
        throw;
      if (refused == error.what())
        functions.wait();
      refused = error.what();
      last.has_lost = true;
      last.result.outcome =
        functions.is_interrupted() ? ending::interrupted : ending::failed;
      last.result.failure = error.what();
    }
    has_lost_ = has_lost_ || last.has_lost;
    auto& result = last.result;
    if (!again || !last.has_lost || result.outcome != ending::failed)
      return std::move(result);
    if (limit.is_reached()) {
      result.failure += limit.sentence(refused.empty());
      return std::move(result);
    }
    if (!functions.find_nodes(plan)) {
      if (!functions.is_interrupted())
        result.failure += "; too few nodes answer to restart the run";
      return std::move(result);
    }
    plan = again(result);
    begins_again = true;
    limit.start(plan.dims.batches_before);
  }
}

} // namespace troupe
