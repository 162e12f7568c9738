// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/directory.hpp"
#include "actors/mail/props.hpp"
#include "kernels/occupation.hpp"
#include "kernels/pool.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// The buffers that samples and labels travel in.
class data_pools {
public:
  /// \param whole what they count among
  data_pools(const run_plan& plan, position first, memory_account& whole);

private:
  memory_account account_;

public:
  pool inputs, labels;
};

/// Reading among the kinds of tasks: behind all ops, and behind the sums of an update.
inline constexpr int reading = op_count + 1;

/// What a data source reads with in real time.
struct sample_reader {
  occupation* seen = nullptr; ///< Null in virtual time.
  /// Called on the thread that is about to read for long. May be empty.
  std::function<void()> before_reading = {};
};

struct data_source_state {
  std::string name = "data_source";
  props shared;
  position where{};                  ///< The first stage of its pipeline.
  int sent = 0;                      ///< Of the replica's microbatches.
  int owed = 0;                      ///< Asked for before it knew anybody.
  std::shared_ptr<data_pools> pools; ///< Null in a simulation.
  std::shared_ptr<const directory> everybody;
  sample_reader reader;
};

/// Reads the samples of one replica. Gives its first stage a microbatch whenever it
/// asks for one, and its last stage the labels.
data_source_actor::behavior_type
data_source(data_source_actor::stateful_pointer<data_source_state> self, props shared,
            position where, std::shared_ptr<data_pools> pools, sample_reader reader);

} // namespace troupe
