// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/expert_sizes.hpp"
#include "messaging/mail/experts.hpp"

#include <functional>
#include <numeric>
#include <vector>

namespace troupe {

/// The rows of one action, from each data replica that an expert serves.
using rows_by_source = std::vector<mail::rows_to_expert>;

inline std::int64_t count_of(const rows_by_source& all) {
  return std::accumulate(
    all.begin(), all.end(), std::int64_t{0},
    [](std::int64_t sum, const auto& part) { return sum + part.rows; });
}

/// What an expert works on: tensors (expert_tensors), or costs alone.
class expert_work {
public:
  virtual ~expert_work() = default;

  /// Floating-point operations of the whole stage's
  /// forward of a sample; 0 where costs do not come from them.
  virtual double operations_of_stage() const = 0;

  /// The share of the stage's forward of so many samples that such rows take; a shorter
  /// sequence is a part of one.
  virtual double share_of(std::int64_t rows, double samples) const = 0;

  /// Puts the rows of all sources behind one another and computes what their action
  /// asks for: outputs, gradients of inputs, gradients of parameters, or both of these.
  virtual void compute(const rows_by_source& rows) = 0;

  /// What has been made of the rows of each source; empty where nothing goes back.
  virtual std::vector<buffer> results(const rows_by_source& rows) = 0;
};

/// An expert where nothing is computed: as many rows come from every data replica.
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
