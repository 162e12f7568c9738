// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/precision.hpp"
#include "kernels/processor.hpp"
#include "plan/run_plan.hpp"

#include <vector>

namespace troupe {

/// True if `products` is bf16 and at least one of the ranks' processors is a CPU. An
/// empty list is the CPU.
bool makes_bf16_by_cpu(precision products, const std::vector<processor>& of_ranks);

/// True if at least one rank of a training computes bf16 products on a CPU. False in a
/// simulation.
bool makes_bf16_by_cpu(const run_plan& plan);

} // namespace troupe
