// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/layout.hpp"
#include "plan/run_plan.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace troupe {

/// Reads the values of buckets from a source of whole layers. A bucket has a whole
/// layer, a tensor shard's part of a layer, or one expert's parameters.
class layer_reader {
public:
  /// \param plan outlives this object
  /// \param source outlives this object
  layer_reader(const run_plan& plan, const weight_source& source)
    : plan_(plan), source_(source) {
    // nop
  }

  /// Returns the values of a bucket; the reference is valid until the next call.
  /// Successive calls for buckets of one layer read that layer from the source only
  /// once.
  /// \param bucket of the plan's layer_buckets()
  /// \pre the plan has a training (`plan.work`)
  const std::vector<float>& values(const layer_bucket& bucket);

private:
  const run_plan& plan_;
  const weight_source& source_;
  std::optional<std::size_t> layer_;
  std::vector<float> whole_values_,
    shard_values_; // of layer `layer_`: whole, and the last bucket's part
};

} // namespace troupe
