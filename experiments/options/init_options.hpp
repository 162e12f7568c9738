// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace troupe {

/// Gives options of the model, and --data, that the user left out the values that the
/// file of --init has: of its own metadata, if troupe wrote it, or of the `config.json`
/// of a GPT-2 beside it (hugging_face.hpp). The error is one sentence about its config,
/// or another value of --heads, which no tensor's shape shows. A file that cannot be
/// read changes nothing; set_up refuses it. \param said what the command line says
/// \param to the same options, which get values
std::string take_options_of_init(const CLI::App& said, CLI::App& to,
                                 const std::string& init);

/// The same of --weights, whose metadata take_saved_options has taken. A folder
/// of checkpoints, and weights without a config, change nothing.
std::string take_options_of_config(const CLI::App& said, CLI::App& to,
                                   const std::string& weights);

} // namespace troupe
