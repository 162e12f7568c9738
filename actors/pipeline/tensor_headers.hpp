// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/mail/tensors.hpp"

namespace troupe {

/// What a tensor message from a pipeline's stage, or its data source, says of itself.
/// \param stage that receives it \param values a sample \param version of the weights
/// that made it
inline tensor_header header_of(const run_plan& plan, position from, int stage,
                               int microbatch, std::int64_t values, int version) {
  return {.step = microbatch / plan.dims.microbatches,
          .microbatch = microbatch,
          .pipeline = plan.replica_at(from),
          .stage = stage,
          .samples = plan.samples_of(from.data, microbatch),
          .values = values,
          .version = version};
}

} // namespace troupe
