#pragma once

#include "experiments/options/options.hpp"
#include "models/safetensors.hpp"

#include <string>

namespace CLI {
class App;
}

namespace troupe {

/// What a file of weights says of the run that made them, so that whoever reads it need
/// not: values of options by their names, "--layers".
file_metadata options_to_save(const options& o);

/// Gives options that the user left out the values that a file of weights says. A
/// folder, and a file of others, say none. Returns what is wrong with the file, if
/// anything.
std::string take_saved_options(CLI::App& app, const std::string& weights);

} // namespace troupe
