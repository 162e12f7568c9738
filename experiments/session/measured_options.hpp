// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <string>

namespace troupe {

/// Where options ask for it, measures what the network's blocks or layers take on this
/// machine: `--split measured` becomes costs, and zb-auto:measured=on its f, i and w.
/// So every node cuts and orders alike. Prints what was measured on the standard error
/// stream, as it can be typed. Returns what of the options makes that impossible;
/// empty: nothing.
std::string measure_options(options& o);

} // namespace troupe
