// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "models/plain_loop.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

enum class verdict : std::uint8_t {
  holds,
  fails,
  no_formula, ///< Nothing is published to hold the run against.
};

/// One way to see that a run did what its schedule says.
struct proof {
  std::string name; ///< "plain loop", "replay", "replicas", "formula"
  verdict what;
  std::string detail; ///< "equal to the bit", or what differs and where.

  bool fails() const { return what == verdict::fails; }
};

/// A proof that holds unless something is wrong.
proof judged(const std::string& name, const std::string& wrong,
             const std::string& praise);

/// Difference between two trainings.
struct difference {
  double relative = 0; ///< The largest of a tensor: norm of the difference over norm.
  std::string where;   ///< That tensor; empty if they are equal to the bit.
  std::string first;   ///< The first loss and the first value that differ, in words.

  bool none() const { return where.empty(); }
  std::string text() const;
};
difference between(const training& work, const trained& a, const trained& b);

/// A value of a parameter that differs, as "stage 1: gradient of ln_f.bias[3] is 0.5
/// instead of 0.25". \param kind "parameter" or "gradient of"
std::string difference_at(const training& work, const std::string& kind,
                          std::size_t layer, const parameter& which, std::int64_t index,
                          float is, float should_be);

/// As many digits as tell two floats apart.
std::string exact(double value);

} // namespace troupe
