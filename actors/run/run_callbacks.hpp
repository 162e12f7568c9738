#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// How far a run has come; what the last finished minibatch lost, if anything is
/// computed.
struct progress {
  std::int64_t samples = 0;
  std::optional<double> loss;
  std::string waits_for =
    {}; ///< Lines about those at work, if none has ended for long.
};

/// What a run tells its caller, and how the caller ends it early. Functions may be
/// empty. Those without another word are called on the thread that waits for the run.
struct run_callbacks {
  /// Gets the parameters (a bucket a layer) that each stage had after `batches`
  /// batches. The run's clock stands still meanwhile. Not empty if the plan evaluates.
  std::function<void(int batches, const std::vector<const float*>& parameters)>
    evaluate = {};

  /// Called now and then, at most ten times a second.
  std::function<void(const progress&)> report = {};

  /// Told of every envelope in virtual time, on the receiver's thread: who opens it,
  /// and what it is.
  std::function<void(const char* receiver, const std::string& what)> listener = {};

  /// Set from outside to end the run early: where stages update together, all do after
  /// the first update that none of them has passed; else when all microbatches that
  /// have come in have been through. May be null.
  const std::atomic<bool>* interrupted = nullptr;
};

} // namespace troupe
