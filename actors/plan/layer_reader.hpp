// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace troupe {

/// Reads the values of a bucket from a source of whole layers: a tensor shard's part of
/// a layer, or one expert's parameters.
class layer_reader {
public:
  /// \param plan,source outlive the reader
  layer_reader(const run_plan& plan, const weight_source& source)
    : plan_(plan), source_(source) {
    // nop
  }

  /// Returns the values of a bucket; the reference is valid until the next call. A
  /// layer is read from the source only once for neighbouring buckets of that layer.
  const std::vector<float>& values(const layer_bucket& bucket);

private:
  const run_plan& plan_;
  const weight_source& source_;
  std::optional<std::size_t> layer_;
  std::vector<float> whole_values_,
    shard_values_; // of layer `layer_`: whole, and this shard's part
};

} // namespace troupe
