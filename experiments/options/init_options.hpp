// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace troupe {

/// Sets the options of the model, --data and --evaluate-data, where the user gave no
/// value, to the values that the file of --init records. A typed --data also excludes
/// --evaluate-data, and --gate excludes --expert-top-k. Values come from the file's
/// metadata, if troupe wrote the file, and from the `config.json` of a GPT-2 in the
/// same folder (hugging_face.hpp). Returns one sentence about a wrong config, or about
/// a recorded value that the option does not allow; else an empty text. A config that
/// contradicts the metadata is an error too. So is a typed --model, --layers,
/// --d-model, --heads or --experts that contradicts the metadata. A file that cannot be
/// read changes nothing here, and set_up reports the failure.
/// \param said application that has parsed the command line
/// \param to another application with the same options, which receives the values
std::string set_options_from_init(const CLI::App& said, CLI::App& to,
                                  const std::string& init);

/// Sets the options that the command line leaves out to the values in the config of
/// --weights. A folder of checkpoints, a model that is no gpt, and weights without a
/// config set nothing; nor does an empty `weights`. Returns one sentence if a file
/// cannot be read, or if the metadata contradicts the config or a typed option. Also
/// returns one sentence about a wrong config, or about a value that an option does not
/// allow; else an empty text. Typed options that contradict the config are reported by
/// weights_from(), not here.
/// \param said as for set_options_from_init
/// \param to as for set_options_from_init
/// \pre set_saved_options has set the options of the metadata
std::string set_options_from_config(const CLI::App& said, CLI::App& to,
                                    const std::string& weights);

} // namespace troupe
