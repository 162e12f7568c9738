// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace troupe {

/// Sets the options of the model and --data, where the user gave no value, to the
/// values that the file of --init records. Values come from the file's metadata, if
/// troupe wrote the file, and from the `config.json` of a GPT-2 in the same folder
/// (hugging_face.hpp). The error is one sentence about the config, or about a recorded
/// value that the option does not allow. A typed option of the network that the
/// metadata contradicts is an error too. A file that cannot be read changes nothing
/// here, and set_up reports the failure.
/// \param said options of the command line
/// \param to the options of `said`, which receive values
std::string set_options_from_init(const CLI::App& said, CLI::App& to,
                                  const std::string& init);

/// Sets the options from the config of --weights, after set_saved_options has set
/// options from the metadata. A folder of checkpoints, and weights without a config,
/// change nothing.
std::string set_options_from_config(const CLI::App& said, CLI::App& to,
                                    const std::string& weights);

} // namespace troupe
