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
  /// Summed over data replicas and directions.
  std::vector<std::vector<float>> gradients;
};

/// The measurements, parameters and outcome that a run returns.
struct run_result {
  ending outcome = ending::finished;
  /// The reason, and the name of an actor that failed; empty unless the run failed.
  std::string failure;

  /// The state of a run that has lost processes, after the last batch whose state the
  /// remaining processes have kept. Null if no process was lost, if some state is lost,
  /// or if the plan keeps no steps.
  std::shared_ptr<const training_state> recovered;
  /// The reason why `recovered` is null, if the run failed and the plan keeps steps;
  /// else empty.
  std::string recovery_error;

  /// Nanoseconds by which times of different ranks may differ, in a run on several
  /// machines.
  nanoseconds clock_doubt = 0;

  double seconds = 0;         ///< Wall time in seconds, without evaluations.
  measures sums;              ///< Measures on the run's clock; times may be modelled.
  record actions;             ///< The actions that the plan keeps.
  bool actions_cut = false;   ///< True if more actions ran than were kept.
  exchange_measures exchange; ///< Empty where all replicas update together.
  /// Accesses of data replicas to shared parameters. Empty unless the plan keeps the
  /// record and replicas update singly.
  shared_history accesses;
  /// Mean losses. In a long run each entry is a mean of `loss_every` minibatches,
  /// otherwise of one minibatch (under a local rule: microbatch).
  std::vector<double> loss;
  /// Minibatches (or microbatches) that an entry of `loss` covers; the last entry may
  /// cover fewer.
  std::int64_t loss_every = 1;
  /// Number of samples seen at the end of each entry of `loss`.
  std::vector<std::int64_t> loss_samples;
  /// Time at which each entry of `loss` was known, in nanoseconds on the run's clock,
  /// which may be modelled. Empty if some time is unknown.
  std::vector<nanoseconds> loss_times;
  /// Number of samples in all entries of `loss`; updates cover these samples.
  std::int64_t samples = 0;
  std::int64_t missing_losses = 0; ///< Number of microbatches without a loss so far.
  /// Peak bytes of tensors, by rank; empty from a simulation.
  std::vector<std::int64_t> peak_bytes;
  /// Peak bytes by rank, for each use alone; empty from a simulation.
  std::vector<std::array<std::int64_t, memory_uses>> peak_parts;
  /// Reserved bytes by rank; empty from a simulation.
  std::vector<std::int64_t> reserved_bytes;

  // The members from `updates` to `odd_stage` are set if the plan keeps weights.
  /// Number of updates by stage, with updates before the run. The updates of data
  /// replicas that update singly are added.
  std::vector<std::int64_t> updates;
  std::int64_t updated_samples = 0; ///< Samples that the updates of one stage cover.
  /// Buckets of all layers.
  std::vector<std::vector<float>> parameters;
  /// Gradients of the last update, summed over data replicas and directions: buckets of
  /// all layers.
  std::vector<std::vector<float>> gradients;
  /// Name of a stage whose parameters differ from replica 0's; empty if there is none.
  std::string odd_stage;

  /// All versions from version 1 on, if the plan keeps versions.
  std::vector<kept_version> versions;

  expert_loads loads; ///< Loads of the experts, if the network has experts.

  std::int64_t envelopes = 0;        ///< Number of messages sent.
  std::int64_t most_envelopes = 0;   ///< Most messages under way, summed over nodes.
  std::int64_t late_allocations = 0; ///< Number of tensor allocations during the run.
  /// Bytes of tensors in messages, by kind of traffic.
  std::array<std::int64_t, traffic_kinds> bytes_moved{};

  /// Number of groups of ranks whose GPUs exchanged arrays without messages.
  int gpu_groups = 0;
  /// The reason why there is no group although ranks had GPUs of their own; else empty.
  std::string ungrouped_reason;

  /// `summed` counts the messages in which data replicas summed gradients.
  /// `summed_at_work` counts only messages that a rank handled while the rank's device
  /// computed.
  std::int64_t summed = 0, summed_at_work = 0;
};

/// The measurements of a run whose actors have all ended. Not included are weights,
/// versions, wall time and the outcome. Moves the record and the loads out of the log.
/// \param to_end whether the run has reached the end of the plan
/// \param remote_reports measurements of other processes
/// \throws std::logic_error if the plan models times, and the time of some action is
/// unknown
run_result measured(const run_plan& plan, run_log& log, const run_resources& resources,
                    const message_meter& meter, bool to_end,
                    const std::vector<mail::node_report>& remote_reports = {});

/// The measurements of this process, for another process that leads the run.
mail::node_report report_of(const run_resources& resources, const message_meter& meter);

} // namespace troupe
