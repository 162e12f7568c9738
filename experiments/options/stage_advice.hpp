// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"
#include "plan/run_plan.hpp"

#include <string>

namespace troupe {

/// The end of a sentence about a model with fewer blocks or layers than stages: the
/// options that help, ": say --layers 8 or --stages 2". Each option was tried. With
/// --split costs= or measured, fewer stages are the only option. Empty if the model has
/// enough blocks or layers, if --split has sizes of stages, or if no option helps.
/// \param plan has a training, the schedule and the numbers of stages and microbatches
std::string stage_advice(const options& o, const chosen_schedule& chosen,
                         const run_plan& plan);

} // namespace troupe
