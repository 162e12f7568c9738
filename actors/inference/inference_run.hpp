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
  std::string failure; ///< One sentence, if the inference failed.
  /// Wall time in seconds, from the first portion on.
  double seconds = 0;
  std::vector<std::int64_t> bytes;   ///< Bytes of tensor memory of each stage.
  std::int64_t late_allocations = 0; ///< Number of tensor allocations during the run.
};

/// Runs a client's portions through stages, which are actors with a device each.
/// Returns when the client is done, an actor fails, or `interrupted` is set.
/// \param interrupted ends the inference once set by another thread; may be null
/// \throws std::bad_alloc without enough memory
/// \throws no_thread without enough threads
/// \throws std::runtime_error without the plan's GPUs
/// \throws exceptions of the weights
inference_result perform(const inference_plan& plan, inference_client& client,
                         const inference_work_maker& make,
                         const std::atomic<bool>* interrupted = nullptr);

} // namespace troupe
