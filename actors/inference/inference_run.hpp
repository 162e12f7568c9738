// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_work.hpp"
#include "actors/run/run_result.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

// Runs an inference: spawns stage actors and a client, and waits until the client has
// all results.

namespace troupe {

/// The outcome and measurements of an inference.
struct inference_result {
  ending outcome = ending::finished;
  std::string failure; ///< The reason, if the inference failed; else empty.
  /// Wall time in seconds, from the first portion on.
  double seconds = 0;
  /// Bytes of tensor memory of each stage, without the client; empty if `interrupted`
  /// was set before the start.
  std::vector<std::int64_t> bytes;
  std::int64_t late_allocations = 0; ///< Number of tensor allocations during the run.
};

/// Runs a client's portions through stages, which are actors with a device each. Ends
/// when the client is done, an actor fails, the inference stalls, or `interrupted` is
/// set. Returns after the forwards under way have ended; a forward that never ends
/// blocks the call.
/// \param interrupted ends the inference once another thread sets the flag; may be null
/// \throws std::bad_alloc if memory is short
/// \throws no_thread if a thread cannot be started
/// \throws std::runtime_error if a GPU of the plan is missing
/// \throws exceptions of `make`, such as those of the plan's weights
inference_result perform(const inference_plan& plan, inference_client& client,
                         const inference_work_maker& make,
                         const std::atomic<bool>* interrupted = nullptr);

} // namespace troupe
