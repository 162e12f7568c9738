// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace troupe {

/// Takes what a stage holds of a layer out of what a source gives of all of it: a
/// tensor shard's part, or one expert's.
class layer_reader {
public:
  /// \param plan,source outlive it
  layer_reader(const run_plan& plan, const weight_source& source)
    : plan_(plan), source_(source) {
    // nop
  }

  /// The values of a bucket, until the next call. Cheap for neighbours of one layer.
  const std::vector<float>& values(const layer_bucket& of);

private:
  const run_plan& plan_;
  const weight_source& source_;
  std::optional<std::size_t> layer_;
  std::vector<float> all_, some_; // of that layer
};

} // namespace troupe
