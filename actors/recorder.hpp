#pragma once

#include "actors/messages.hpp"
#include "actors/notice_board.hpp"
#include "actors/props.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// What is known of a run afterwards.
struct run_log {
  explicit run_log(const run_plan& plan);

  /// Adds a microbatch's loss; returns how far the run has come by it.
  progress add(const run_plan& plan, const mail::microbatch_loss& loss);

  /// Mean loss of each minibatch (of each microbatch under a local rule) whose
  /// microbatches are all there, and the samples seen by then.
  void losses(const run_plan& plan, std::vector<double>& loss,
              std::vector<std::int64_t>& samples) const;

  std::vector<rank_sums> sums;                     ///< A rank each.
  record actions;                                  ///< Empty unless the plan keeps it.
  std::vector<mail::microbatch_loss> microbatches; ///< By number; samples 0: not there.
  std::vector<mail::version_made> versions; ///< Of all stages, if the plan keeps them.
  expert_loads loads;

private:
  std::vector<int> order_;   // of microbatches: entry by entry, replica by replica
  std::size_t complete_ = 0; // of those, without a gap
  std::int64_t samples_ = 0; // of those
};

struct recorder_state {
  std::string name = "recorder";
  props shared;
  std::shared_ptr<run_log> log;
  std::shared_ptr<notice_board> board;
};

/// Keeps what the others say they did.
recorder_actor::behavior_type
recorder(recorder_actor::stateful_pointer<recorder_state> self, props shared,
         std::shared_ptr<run_log> log, std::shared_ptr<notice_board> board);

} // namespace troupe
