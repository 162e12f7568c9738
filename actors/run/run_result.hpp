// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/mail.hpp"
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

class equipment;
struct saved_training;
struct run_log;

/// The network after an update, and the gradients that it was of: buckets of all
/// layers.
struct kept_version {
  std::vector<std::vector<float>> parameters;
  std::vector<std::vector<float>> gradients; ///< Summed, over replicas.
};

/// What a run leaves behind.
struct run_result {
  ending how = ending::finished;
  std::string failure; ///< Who failed and why, if it failed.

  /// Of a run that has lost processes: all of it after the last step that the others
  /// have kept. Null if they have not all, or the plan keeps no steps.
  std::shared_ptr<const saved_training> survives;
  std::string lost_for; ///< Why they have not, if the plan keeps steps.

  /// By so much times of different ranks may be apart, where several machines play.
  nanoseconds clock_doubt = 0;

  double seconds = 0;          ///< Of wall time, without evaluations.
  measures sums;               ///< On the run's clock; times may be modelled.
  record actions;              ///< Those that the plan keeps.
  bool actions_cut = false;    ///< There were more.
  exchange_measures exchange;  ///< Empty where updates are common.
  shared_history accesses;     ///< If the plan keeps it; empty likewise.
  std::vector<double> loss;    ///< A minibatch each (a local rule: a microbatch),
  std::int64_t loss_every = 1; ///< or the mean of so many; of the last maybe fewer.
  std::vector<std::int64_t> loss_samples; ///< Samples seen by then.
  /// When they were known, on the run's clock, which may be modelled; empty if that is
  /// not known.
  std::vector<nanoseconds> loss_times;
  std::int64_t samples = 0;             ///< Of these losses; updates cover them.
  std::int64_t missing_losses = 0;      ///< Of microbatches; they have not come.
  std::vector<std::int64_t> peak_bytes; ///< A rank; empty from a simulation.
  std::vector<std::array<std::int64_t, memory_uses>> peak_parts; ///< Of each use alone.
  std::vector<std::int64_t> reserved_bytes;                      ///< A rank; likewise.

  // If the plan keeps weights: what made them, and buckets of all layers.
  std::vector<std::int64_t> updates; ///< A stage: over data replicas with some alone.
  std::int64_t updated_samples = 0;  ///< That those of a stage cover.
  std::vector<std::vector<float>> parameters;
  std::vector<std::vector<float>> gradients; ///< Summed last, over replicas.
  std::string odd_stage; ///< One whose replica 0 ended with other parameters.

  std::vector<kept_version> versions; ///< From version 1 on, if the plan keeps them.

  expert_loads loads; ///< Of a network with experts.

  std::int64_t envelopes = 0;        ///< Messages sent.
  std::int64_t most_envelopes = 0;   ///< Under way at once.
  std::int64_t late_allocations = 0; ///< Of tensor memory, after wiring.
  std::array<std::int64_t, traffic_kinds> bytes_moved{}; ///< Of tensors in them.

  /// Groups of ranks whose GPUs exchanged arrays themselves, and why there were none
  /// although ranks were on GPUs of their own; empty: there is no such reason.
  int gpu_groups = 0;
  std::string ungrouped;

  /// Messages in which data replicas summed gradients, and how many of them a rank
  /// handled while its own device computed.
  std::int64_t summed = 0, summed_at_work = 0;
};

/// What was measured of a run whose actors have all ended: everything but its weights,
/// versions and wall time, and how it ended. Takes the record and the loads off the
/// log.
/// \param to_end whether all that the plan says was run
/// \param elsewhere what other processes have measured
/// \throws std::logic_error if times are to be modelled, and what ran is not known
run_result measured(const run_plan& plan, run_log& log, const equipment& equipped,
                    const mail_meter& meter, bool to_end,
                    const std::vector<mail::node_report>& elsewhere = {});

/// What a process has measured whose ranks another one leads.
mail::node_report report_of(const equipment& equipped, const mail_meter& meter);

} // namespace troupe
