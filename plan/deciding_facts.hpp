// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/precision.hpp"
#include "kernels/processor.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>
#include <vector>

// Properties of a plan that decide the numbers of a training, besides the plan's
// options.

namespace troupe {

/// True if `products` is bf16 and at least one of the ranks' processors is a CPU. An
/// empty list is the CPU.
bool makes_bf16_by_cpu(precision products, const std::vector<processor>& of_ranks);

/// True if at least one rank of a training computes bf16 products on a CPU. False in a
/// simulation.
bool makes_bf16_by_cpu(const run_plan& plan);

/// True if microbatches change the result, and not only the order of sums. Lengths go
/// in rotation, experts fill up and are balanced by microbatch, and without a flush a
/// microbatch reads weights by its number.
/// \pre the plan has a training (`plan.work`)
bool depends_on_microbatches(const run_plan& plan);

/// Samples of each microbatch of a batch; empty if the numbers differ by one at most.
std::vector<std::int64_t> uneven_sizes(const run_plan& plan);

} // namespace troupe
