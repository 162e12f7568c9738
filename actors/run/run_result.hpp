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
  /// The reason why `recovered` is null, if the plan keeps steps.
  std::string recovery_error;

  /// Nanoseconds by which times of different ranks may differ, in a run on several
  /// machines.
  nanoseconds clock_doubt = 0;

  double seconds = 0;         ///< Wall time in seconds, without evaluations.
  measures sums;              ///< Measures on the run's clock; times may be modelled.
  record actions;             ///< The actions that the plan keeps.
  bool actions_cut = false;   ///< More actions ran than were kept.
  exchange_measures exchange; ///< Empty where replicas share each update.
  /// Empty unless the plan keeps the record and replicas update singly.
  shared_history accesses;
  /// One for each minibatch (a local rule: microbatch), or the mean of `loss_every`.
  std::vector<double> loss;
  /// Losses that an entry of `loss` averages; the last may average fewer.
  std::int64_t loss_every = 1;
  /// Number of samples seen at the end of each entry of `loss`.
  std::vector<std::int64_t> loss_samples;
  /// Times at which losses were known, in nanoseconds on the run's clock, which may be
  /// modelled. Empty if some time is unknown.
  std::vector<nanoseconds> loss_times;
  /// Samples of the losses; updates cover these samples.
  std::int64_t samples = 0;
  std::int64_t missing_losses = 0; ///< Microbatches without a loss so far.
  /// Peak bytes of tensors, by rank; empty from a simulation.
  std::vector<std::int64_t> peak_bytes;
  /// Peak bytes of each use alone, by rank.
  std::vector<std::array<std::int64_t, memory_uses>> peak_parts;
  /// Reserved bytes by rank; empty from a simulation.
  std::vector<std::int64_t> reserved_bytes;

  // If the plan keeps weights: the updates that made the weights, and buckets of all
  // layers.
  /// Number of updates by stage, summed over data replicas that update alone.
  std::vector<std::int64_t> updates;
  std::int64_t updated_samples = 0; ///< Samples that the updates of one stage cover.
  std::vector<std::vector<float>> parameters;
  /// Gradients of the last update, summed over replicas.
  std::vector<std::vector<float>> gradients;
  std::string odd_stage; ///< Name of a stage whose parameters differ from replica 0's.

  /// All versions from version 1 on, if the plan keeps versions.
  std::vector<kept_version> versions;

  expert_loads loads; ///< Loads of the experts, if the network has experts.

  std::int64_t envelopes = 0;        ///< Messages sent.
  std::int64_t most_envelopes = 0;   ///< Largest number under way; summed over nodes.
  std::int64_t late_allocations = 0; ///< Allocations of tensor memory after wiring.
  /// Bytes of tensors in messages, by kind of traffic.
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
