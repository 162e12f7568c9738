#pragma once

#include "models/weights.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace troupe {

/// A network with its weights, and the stages that run it forwards.
struct inference_plan {
  network<float> whole;
  std::vector<int> first_layers; ///< As `cut` returns them.
  weight_source weights;
  int threads = 1; ///< Of the CPU, for all stages together.
  std::chrono::milliseconds stall_timeout{10'000};

  int stages() const { return static_cast<int>(first_layers.size()) - 1; }
  int first_layer(int stage) const {
    return first_layers[static_cast<std::size_t>(stage)];
  }
  int end_layer(int stage) const { return first_layer(stage + 1); }

  /// Threads that a stage computes with.
  int team_of(int stage) const {
    return std::max(1, threads / stages() + (stage < threads % stages() ? 1 : 0));
  }
};

} // namespace troupe
