// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/plain_loop.hpp"
#include "plan/workload.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// The outcome of a proof.
enum class verdict : std::uint8_t {
  holds,
  fails,
  no_formula, ///< No published formula exists to check the run against.
};

/// The result of one check that a run followed the schedule.
struct proof {
  std::string name; ///< "plain loop", "replay", "replicas", "directions", "formula"
  verdict outcome;
  /// If the proof holds: "equal to the bit", or another text. If the proof fails: the
  /// first difference and its place, or the error in the record. If there is no
  /// formula: a sentence that says so.
  std::string detail;

  bool fails() const { return outcome == verdict::fails; }
};

/// Returns a proof that holds if `deviation` is empty, and else fails with `deviation`
/// as the detail.
/// \param praise the detail of a proof that holds
proof judged(const std::string& name, const std::string& deviation,
             const std::string& praise);

/// The difference between the results of two trainings.
struct difference {
  /// Largest ratio of norms, over the losses and all tensors: norm of the difference /
  /// norm of the reference. A reference norm of 0 counts as 1. Infinite if the numbers
  /// of losses differ.
  double relative = 0;
  /// The place of the largest ratio: the tensor, "losses", or a text about the number
  /// of losses. Empty if all are equal to the bit.
  std::string where;
  std::string first; ///< First loss and first tensor value that differ, as text.

  bool none() const { return where.empty(); }
  /// The first difference and `relative` as text; "equal to the bit" if there is none.
  std::string text() const;
};

/// Compares losses, parameters and gradients of training `a` with the reference `b`,
/// bit by bit. Parameters and gradients are not compared if the numbers of losses
/// differ.
/// \pre both trainings have the buckets of all layers
difference between(const training& work, const trained& a, const trained& b);

/// Describes a differing value of a parameter: "stage 1: gradient of ln_f.bias[3] is
/// 0.5 instead of 0.25".
/// \param kind "parameter" or "gradient of"
std::string difference_at(const training& work, const std::string& kind,
                          std::size_t layer, const parameter& which, std::int64_t index,
                          float is, float should_be);

/// Returns a value as text. If the value is a float, the digits distinguish any two
/// floats; else any two doubles.
std::string exact(double value);

} // namespace troupe
