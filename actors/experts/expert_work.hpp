// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/experts.hpp"
#include "plan/expert_sizes.hpp"

#include <functional>
#include <numeric>
#include <vector>

// The work of an expert, as an interface with two implementations: real tensors, or
// costs alone.

namespace troupe {

/// The rows of one action, one entry for each data replica that an expert serves.
using rows_by_source = std::vector<mail::rows_to_expert>;

inline std::int64_t count_of(const rows_by_source& sources) {
  return std::accumulate(
    sources.begin(), sources.end(), std::int64_t{0},
    [](std::int64_t sum, const auto& part) { return sum + part.rows; });
}

/// The work of an expert: on tensors (expert_tensors), or as costs alone
/// (simulated_expert). The device of the rank calls compute(); the expert's actor calls
/// the other functions. The actor calls results() after compute() has ended. If no
/// source sent rows, and no gradients have to be set to 0, compute() is not called.
class expert_work {
public:
  virtual ~expert_work() = default;

  /// Floating-point operations of the whole stage's forward, per sample; 0 in a
  /// simulation without arithmetic.
  virtual double operations_of_stage() const = 0;

  /// The fraction of the stage's forward of `samples` samples that an expert spends on
  /// `rows` rows. A shorter sequence counts as a fraction of a sample.
  virtual double share_of(std::int64_t rows, double samples) const = 0;

  /// Concatenates the rows of all sources and computes the action: outputs, gradients
  /// of inputs, gradients of parameters, or both kinds of gradients. Without rows, sets
  /// the gradients of parameters to 0.
  /// \pre one source has lent arrays
  virtual void compute(const rows_by_source& rows) = 0;

  /// The results for the rows of each source; empty buffers where nothing is sent back.
  virtual std::vector<buffer> results(const rows_by_source& rows) = 0;
};

/// An expert in a simulation without arithmetic: all data replicas send the same number
/// of rows.
class simulated_expert : public expert_work {
public:
  double operations_of_stage() const override { return 0; }
  double share_of(std::int64_t, double) const override {
    return simulated_expert_share;
  }
  void compute(const rows_by_source&) override {}
  std::vector<buffer> results(const rows_by_source& rows) override {
    return std::vector<buffer>(rows.size());
  }
};

} // namespace troupe
