// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/send.hpp"
#include "actors/rank/rank_memory.hpp"
#include "actors/run/progress.hpp"
#include "actors/updates/shared_parameters.hpp"
#include "messaging/mail/nodes.hpp"
#include "messaging/record.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

class run_resources;
struct training_state;
struct run_log;

/// The network after an update, and the gradients of that update: buckets of all
/// layers.
struct kept_version {
  std::vector<std::vector<float>> parameters;
  std::vector<std::vector<float>> gradients; ///< Summed over replicas.
};

/// The measurements, parameters and outcome that a run returns.
struct run_result {
  ending outcome = ending::finished;
  std::string failure; ///< Name of the actor that failed, and the reason.

  /// The state of a run that has lost processes, after the last step that the remaining
  /// processes have kept. Null if some state is lost, or the plan keeps no steps.
  std::shared_ptr<const training_state> recovered;
  std::string recovery_error; ///< The reason for that null, if the plan keeps steps.

  /// Nanoseconds by which times of different ranks may differ, in a run on several
  /// machines.
  nanoseconds clock_doubt = 0;

  double seconds = 0;          ///< Of wall time, without evaluations.
  measures sums;               ///< On the run's clock; times may be modelled.
  record actions;              ///< The actions that the plan keeps.
  bool actions_cut = false;    ///< More actions ran than were kept.
  exchange_measures exchange;  ///< Empty where replicas share each update.
  shared_history accesses;     ///< If the plan keeps the record; empty likewise.
  std::vector<double> loss;    ///< One for each minibatch (a local rule: microbatch),
  std::int64_t loss_every = 1; ///< or the mean of this many; the last may have fewer.
  std::vector<std::int64_t> loss_samples; ///< Number of samples seen by then.
  /// Times at which losses were known, in nanoseconds on the run's clock, which may be
  /// modelled. Empty if some time is unknown.
  std::vector<nanoseconds> loss_times;
  std::int64_t samples = 0;             ///< Of the losses; updates cover these samples.
  std::int64_t missing_losses = 0;      ///< Microbatches without a loss so far.
  std::vector<std::int64_t> peak_bytes; ///< By rank; empty from a simulation.
  /// Of each use alone, by rank.
  std::vector<std::array<std::int64_t, memory_uses>> peak_parts;
  std::vector<std::int64_t> reserved_bytes; ///< By rank; empty likewise.

  // If the plan keeps weights: the updates behind the weights, and buckets of all
  // layers.
  /// By stage; over data replicas that update alone.
  std::vector<std::int64_t> updates;
  std::int64_t updated_samples = 0; ///< Covered by the updates of one stage.
  std::vector<std::vector<float>> parameters;
  std::vector<std::vector<float>> gradients; ///< Of the last update, over replicas.
  std::string odd_stage; ///< Name of a stage whose parameters differ from replica 0's.

  /// From version 1 on, if the plan keeps versions.
  std::vector<kept_version> versions;

  expert_loads loads; ///< Of a network with experts.

  std::int64_t envelopes = 0;        ///< Messages sent.
  std::int64_t most_envelopes = 0;   ///< Largest number under way; summed over nodes.
  std::int64_t late_allocations = 0; ///< Of tensor memory, after wiring.
  /// Of tensors in messages, by kind.
  std::array<std::int64_t, traffic_kinds> bytes_moved{};

  /// Number of groups of ranks whose GPUs exchanged arrays themselves. The text is the
  /// reason if there were none although ranks had GPUs of their own; empty: no such
  /// reason.
  int gpu_groups = 0;
  std::string ungrouped_reason;

  /// Messages in which data replicas summed gradients, and the number of these that a
  /// rank handled while the rank's device computed.
  std::int64_t summed = 0, summed_at_work = 0;
};

/// The measurements of a run whose actors have all ended. Not included are weights,
/// versions, wall time and the outcome. Moves the record and the loads out of the log.
/// \param to_end whether the run has reached the end of the plan
/// \param remote_reports measurements of other processes
/// \throws std::logic_error if times are to be modelled, and some action is unknown
run_result measured(const run_plan& plan, run_log& log, const run_resources& resources,
                    const message_meter& meter, bool to_end,
                    const std::vector<mail::node_report>& remote_reports = {});

/// The measurements of a process whose ranks are led by another process.
mail::node_report report_of(const run_resources& resources, const message_meter& meter);

} // namespace troupe
