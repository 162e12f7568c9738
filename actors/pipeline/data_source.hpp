// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/actor_handles.hpp"
#include "actors/mail/run_context.hpp"
#include "kernels/occupation.hpp"
#include "kernels/pool.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// The buffer pools of one data source: their buffers hold samples and labels.
class data_pools {
public:
  /// \param first position of the pipeline's first stage
  /// \param whole parent account, which also counts the bytes of these pools; outlives
  /// the pools
  /// \pre plan.work
  data_pools(const run_plan& plan, position first, memory_account& whole);

private:
  memory_account account_;

public:
  pool inputs, labels;
};

/// The task kind (task::kind) of a read of samples. Kinds below op_count are operations
/// (`op`). Kind op_count is other work, such as sums, copies and transfers.
inline constexpr int reading = op_count + 1;

/// Hooks around the reads of a data source in real time.
struct sample_reader {
  /// The reader's current task, set during reads; outlives the data source. Null in
  /// virtual time.
  occupation* current_task = nullptr;
  /// Called on the data source's thread before each read, as the read may block the
  /// thread. May be empty.
  std::function<void()> before_reading = {};
};

struct data_source_state {
  std::string name = "data_source";
  run_context shared;
  position where{};                  ///< The first stage of the pipeline.
  int sent = 0;                      ///< Microbatches sent, of this pipeline.
  int pending_demands = 0;           ///< Demands received before the wiring.
  std::shared_ptr<data_pools> pools; ///< Null in a simulation.
  std::shared_ptr<const actor_handles> handles;
  sample_reader reader;
};

/// An actor that reads the samples of one pipeline. On each demand of the first stage
/// the actor sends one microbatch's input to the first stage and the labels to the
/// last. Demands before the wiring are answered after the wiring. Demands after the
/// pipeline's last microbatch have no effect.
/// \param where the pipeline's first stage
/// \param pools null in a simulation: the input is then empty, and no labels are sent
data_source_actor::behavior_type
data_source(data_source_actor::stateful_pointer<data_source_state> self,
            run_context shared, position where, std::shared_ptr<data_pools> pools,
            sample_reader reader);

} // namespace troupe
