// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/tensors.hpp"
#include "plan/run_plan.hpp"

namespace troupe {

/// Returns the header of a tensor message that a pipeline's stage or data source sends.
/// \param from position of the sender
/// \param stage index of the stage that receives the message
/// \param microbatch index over the run of the data replica
/// \param values number of 4-byte values for each sample
/// \param version of the weights that produced the payload; 0 from a data source
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
