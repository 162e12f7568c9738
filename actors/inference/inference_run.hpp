// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_work.hpp"
#include "actors/run/run_result.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// How an inference went.
struct inference_result {
  ending how = ending::finished;
  std::string failure;               ///< One sentence, if it failed.
  double seconds = 0;                ///< From the first portion on.
  std::vector<std::int64_t> bytes;   ///< Tensor memory of each stage.
  std::int64_t late_allocations = 0; ///< Of tensors, while it ran.
};

/// Runs what a client wants through stages that are actors, each with a device of its
/// own, until all has come out or an actor fails.
/// \param interrupted once it is set, the inference ends. May be null.
/// \throws std::bad_alloc if memory is not there, no_thread if threads are not,
/// std::runtime_error if a GPU is not, and what the weights throw
inference_result perform(const inference_plan& plan, inference_client& client,
                         const inference_work_maker& make,
                         const std::atomic<bool>* interrupted = nullptr);

} // namespace troupe
