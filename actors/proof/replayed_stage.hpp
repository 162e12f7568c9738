// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "kernels/space_allocator.hpp"
#include "messaging/record.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// Values of some layers, a bucket each, where kernels of the plan reach them.
using bucket_values = std::vector<vector_in<float>>;

/// One replica of one stage in a replay, at a place in what the record says it did.
struct replayed_stage {
  replayed_stage(const run_plan& plan, position where, const record& ran);

  position where;
  slices_by_length<float> slices;
  std::vector<measured_action> todo;
  std::size_t next = 0;
  std::map<int, bucket_values> versions;
  bucket_values sum;                        ///< Of gradients, since the last update.
  std::vector<bucket_values> by_microbatch; ///< Where data replicas sum each by itself.
  int summed = 0;                           ///< Microbatches in the sum,
  std::int64_t samples = 0;                 ///< and samples.

  /// For sequences of a length; 0: as long as the network takes.
  const slice<float>& layers(std::int64_t length = 0) const {
    return slices.at(length);
  }

  bool over() const { return next == todo.size(); }
  const measured_action& now() const { return todo[next]; }

  /// The parameters that the sample at hand reads.
  /// \throws std::logic_error if there is no such version
  const bucket_values& parameters() const;

  /// Goes on to the next sample, and drops the versions that nothing to come reads.
  void advance();

  /// The update at hand has been made.
  void end_update();

  /// Why it cannot go on, where nobody can, or what it has left behind at its end;
  /// empty if all is well.
  std::string trouble() const;
};

} // namespace troupe
