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
/// (hugging_face.hpp). Returns one sentence about a wrong config, or about a recorded
/// value that the option does not allow; else an empty text. A typed option of the
/// network, or a config, that contradicts the metadata is an error too. A file that
/// cannot be read changes nothing here, and set_up reports the failure.
/// \param said options of the command line
/// \param to the options of `said`, which receive values
std::string set_options_from_init(const CLI::App& said, CLI::App& to,
                                  const std::string& init);

/// Sets the options that the command line leaves out to the values in the config of
/// --weights. A folder of checkpoints, and weights without a config, set nothing.
/// Returns one sentence if a file cannot be read, or if config, metadata and typed
/// options contradict each other; else an empty text.
/// \param said as for set_options_from_init
/// \param to as for set_options_from_init
/// \pre set_saved_options has set the options of the metadata
std::string set_options_from_config(const CLI::App& said, CLI::App& to,
                                    const std::string& weights);

} // namespace troupe
