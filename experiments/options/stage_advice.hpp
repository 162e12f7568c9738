// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "experiments/options/options.hpp"

#include <string>

namespace troupe {

/// The end of a sentence about a model with fewer blocks or layers than stages: the
/// options that help, ": say --layers 8 or --stages 2". Each was tried. Empty if the
/// model has blocks or layers enough, or no such option helps.
/// \param plan with its schedule and numbers of stages and microbatches
std::string stage_advice(const options& o, const chosen_schedule& one,
                         const run_plan& plan);

} // namespace troupe
