// SPDX-License-Identifier: BSD-3-Clause
// PipeDream-2BW: 1F1B without a flush on two weight versions. All microbatches of batch
// t read version max(t-1, 0) on all stages: W(t+1) = W(t) - lr * grad f(W(t-1)).
// Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", 2021.
//
//   slot     0  1  2  3  4  5  6  7  8  9      2 stages, 2 microbatches a batch
//   rank 0   F0 .  F1 B0 F2 B1 F3 B2 F4 B3     B1 and B3 are followed by a U
//   rank 1   .  F0 B0 F1 B1 F2 B2 F3 B3 F4

#include "schedules/catalog/catalog.hpp"
#include "schedules/catalog/slots.hpp"

#include <algorithm>

namespace troupe {

namespace {

int one_before(const shape& dims, int, int microbatch, int) {
  return std::max(0, microbatch / dims.microbatches - 1);
}

std::string refuses(const shape& dims) {
  if (dims.microbatches >= dims.stages)
    return {};
  return "2bw needs at least as many microbatches as stages to keep two weight "
         "versions";
}

} // namespace

schedule two_bw() {
  return {
    .name = "2bw",
    .order = one_f_one_b_slot,
    .weights = {"double_buffered", one_before},
    .streams = true,
    .refuses = refuses,
  };
}

} // namespace troupe
