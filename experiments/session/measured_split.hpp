#pragma once

#include "experiments/options/options.hpp"

#include <string>

namespace troupe {

/// Where options say `--split measured`, measures the costs of the network's blocks or
/// layers and writes them into the options in its place, so that every node cuts alike.
/// Prints them on the standard error stream. Returns what of the options makes that
/// impossible; empty: nothing.
std::string measure_split(options& o);

} // namespace troupe
