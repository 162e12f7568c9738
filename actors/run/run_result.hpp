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

/// The network after an update, and the gradients of that update: fp32 buckets of all
/// layers.
struct kept_version {
  std::vector<std::vector<float>> parameters;
  /// Summed over data replicas and directions.
  std::vector<std::vector<float>> gradients;
};

/// The measurements, parameters and outcome that a run returns.
struct run_result {
  ending outcome = ending::finished;
  /// The reason if the run failed, with the actor's name if an actor failed; else
  /// empty.
  std::string failure;

  /// The state of a run that has lost processes, after the last batch whose state the
  /// remaining processes have kept. Null if no process was lost, if the plan keeps no
  /// steps, or if the state could not be fetched.
  std::shared_ptr<const training_state> recovered;
  /// The reason why `recovered` is null, if the run failed and the plan keeps steps;
  /// else empty.
  std::string recovery_error;

  /// Upper bound on the nanoseconds by which times of different ranks differ, in a run
  /// on several machines. 0 if the run is in one process.
  nanoseconds clock_doubt = 0;

  double seconds = 0;         ///< Wall time in seconds, without evaluations.
  measures sums;              ///< Measures on the run's clock; times may be modelled.
  record actions;             ///< The actions that the plan keeps.
  bool actions_cut = false;   ///< True if more actions ran than were kept.
  exchange_measures exchange; ///< Empty where all replicas update together.
  /// Accesses of data replicas to shared parameters. Empty if all replicas update
  /// together, or the plan keeps no record. In real time with Hogwild, no accesses are
  /// known.
  shared_history accesses;
  /// Mean losses, in nats per prediction. In a long run without a record each entry is
  /// a mean of `loss_every` minibatches, otherwise of one minibatch (under a local
  /// rule: microbatch).
  std::vector<double> loss;
  /// Minibatches (or microbatches) that an entry of `loss` covers; the last entry may
  /// cover fewer.
  std::int64_t loss_every = 1;
  /// Number of samples of this run up to the end of each entry of `loss`.
  std::vector<std::int64_t> loss_samples;
  /// Time at which each entry of `loss` was known, in nanoseconds on the run's clock,
  /// which may be modelled. Empty if some time is unknown.
  std::vector<nanoseconds> loss_times;
  /// Norm of the mean gradient over all parameters, before clipping, for each entry of
  /// `loss`: the mean over the entry's updates. Fewer entries where the last updates
  /// did not end. Empty where no norm is measured: see norm_shards().
  std::vector<double> gradient_norms;
  /// Learning rate for each entry of `gradient_norms`.
  std::vector<double> learning_rates;
  /// Number of samples in all entries of `loss`; updates cover these samples.
  std::int64_t samples = 0;
  /// Microbatches of a finished run whose losses did not come; 0 from a simulation. In
  /// a run that ended early, only microbatches before the last loss count.
  std::int64_t missing_losses = 0;
  /// Peak bytes of tensors, by rank; 0 for a rank whose process has not reported. Empty
  /// from a simulation.
  std::vector<std::int64_t> peak_bytes;
  /// Peak bytes by rank, for each use alone; empty from a simulation.
  std::vector<std::array<std::int64_t, memory_uses>> peak_parts;
  /// Reserved bytes by rank, at the end of the run; empty from a simulation.
  std::vector<std::int64_t> reserved_bytes;
  /// Number of processes whose measurements the result has, with this process.
  int processes = 1;

  // The members from `updates` to `odd_stage` are set if the plan keeps weights and the
  // run has not failed. A simulation sets only numbers.
  /// Number of updates by stage, with updates before the run. If data replicas do not
  /// all update together, the sum of the replicas' numbers.
  std::vector<std::int64_t> updates;
  /// Samples of all data replicas that the updates of the first stage cover, with
  /// updates before the run.
  std::int64_t updated_samples = 0;
  /// Buckets of all layers, in fp32.
  std::vector<std::vector<float>> parameters;
  /// Gradients of the last update, summed over data replicas and directions: buckets of
  /// all layers. Empty unless the plan keeps gradients.
  std::vector<std::vector<float>> gradients;
  /// Name of the first stage whose parameters differ from the copy of an earlier
  /// replica or tensor shard; empty if there is none.
  std::string odd_stage;

  /// All versions from version 1 on, if the plan keeps versions and the run has not
  /// failed.
  std::vector<kept_version> versions;

  expert_loads loads; ///< Loads of the experts, if the network has experts.

  std::int64_t envelopes = 0;        ///< Number of messages sent, over all processes.
  std::int64_t most_envelopes = 0;   ///< Most messages under way, summed over nodes.
  std::int64_t late_allocations = 0; ///< Number of tensor allocations during the run.
  /// Bytes of tensors in messages, by kind of traffic.
  std::array<std::int64_t, traffic_kinds> bytes_moved{};

  /// Number of groups of ranks whose GPUs exchanged arrays without messages.
  int gpu_groups = 0;
  /// The reason why a possible group of GPUs did not exist (known_groups::exclusion);
  /// else empty.
  std::string ungrouped_reason;

  /// `summed` counts the messages in which data replicas summed gradients.
  /// `summed_at_work` counts only messages that a rank handled while the rank's device
  /// computed.
  std::int64_t summed = 0, summed_at_work = 0;
};

/// The measurements of a run whose actors have all ended. Not included are weights,
/// versions, wall time and the outcome. Moves the record and the loads out of the log.
/// \param resources,meter of this process
/// \param to_end true if the run has reached the end of the plan
/// \param remote_reports measurements of other processes
/// \throws std::logic_error if the plan models times, the run has reached the end, and
/// the time of some action is unknown
run_result measured(const run_plan& plan, run_log& log, const run_resources& resources,
                    const message_meter& meter, bool to_end,
                    const std::vector<mail::node_report>& remote_reports = {});

/// The measurements of this process, for another process that leads the run.
mail::node_report report_of(const run_resources& resources, const message_meter& meter);

} // namespace troupe
