// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/processor.hpp"
#include "models/weights.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

// The plan of an inference: network, weights, split into stages, and processors.

namespace troupe {

/// A network with weights, and the stages that run forwards.
struct inference_plan {
  network<float> whole;
  /// Index of each stage's first layer, then the number of layers: the result of cut()
  /// (models/network.hpp).
  std::vector<int> first_layers;
  weight_source weights;
  int threads = 1; ///< CPU threads of all stages together.
  /// Processors of stages, used cyclically; empty: the CPU.
  std::vector<processor> processors = {};
  std::chrono::milliseconds stall_timeout{10'000};

  int stages() const { return static_cast<int>(first_layers.size()) - 1; }
  int first_layer(int stage) const {
    return first_layers[static_cast<std::size_t>(stage)];
  }
  int end_layer(int stage) const { return first_layer(stage + 1); }

  /// The processor that computes for a stage.
  processor processor_of(int stage) const {
    return processors.empty()
             ? processor{}
             : processors[static_cast<std::size_t>(stage) % processors.size()];
  }

  /// Memory for a stage's tensors: the memory of the stage's GPU, if the stage has a
  /// GPU. Stages pass buffers to each other, so a stage on the CPU uses memory of the
  /// first GPU in `processors`. The CPU reaches that memory too. If `processors` has no
  /// GPU, the stage uses CPU memory.
  memory_space& memory_at(int stage) const {
    const auto local_processor = processor_of(stage);
    const auto gpu = std::ranges::find_if(processors, &processor::is_gpu);
    return memory_of(
      local_processor.is_gpu() || gpu == processors.end() ? local_processor : *gpu);
  }

  /// Number of CPU threads that compute a stage: at least 1, and 1 for a stage on a
  /// GPU.
  int team_of(int stage) const {
    if (processor_of(stage).is_gpu())
      return 1;
    return std::max(1, threads / stages() + (stage < threads % stages() ? 1 : 0));
  }
};

} // namespace troupe
