// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <string>

namespace troupe {

/// Measures the times of the network's blocks or layers on this machine, if options ask
/// for that; else changes nothing. `--split measured` becomes costs;
/// zb-auto:measured=on becomes values of f, i and w. All nodes receive these values,
/// and therefore cut the network and order actions in the same way. Prints the values
/// on the standard error stream in a form that can be typed, unless output is quiet.
/// Returns one sentence if a simulation, a GPU or a wrong option makes a measurement
/// impossible, else an empty text.
std::string measure_options(options& o);

} // namespace troupe
