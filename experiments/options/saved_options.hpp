// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"
#include "models/data_identity.hpp"
#include "models/safetensors.hpp"

#include <tl/expected.hpp>

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace troupe {

/// The options that a file of weights records of its run, by name: "--layers". A reader
/// of the file need not type the recorded options again.
file_metadata options_to_save(const options& o);

/// options_to_save(), and the identity of the data that the run read, if the data has
/// one.
file_metadata facts_to_save(const options& o, const std::optional<data_identity>& data);

/// The record of a run in a file of weights or in a checkpoint.
struct saved_run {
  std::string from; ///< Path of the file or the checkpoint.
  /// Values by option name: "--layers". A file of weights may have other keys too.
  file_metadata options;
  std::optional<data_identity> data; ///< Absent if none was recorded.
};

/// True if a path leads to weights (safetensors.hpp), and not to checkpoints. Every
/// path that is no folder counts as weights, even if no file exists there. A folder
/// counts if it has a file of weights or a config.json. A folder that is a checkpoint,
/// or has checkpoints, does not count.
bool is_of_weights(const std::string& location);

/// Reads the record of a file of weights, of one checkpoint, or of the newest intact
/// checkpoint in a folder (check_checkpoint). If no checkpoint is intact, reads the
/// newest readable manifest. If no manifest is readable, the record has only `from`.
/// The error is one sentence about the file of weights.
tl::expected<saved_run, std::string> saved_run_of(const std::string& location);

/// Sets options that a command line leaves out, and that a file may set, to the values
/// of a saved run. An option is not set if a related option is typed: --expert-top-k
/// and --capacity with --gate, --microbatch-sizes with --microbatches. The same holds
/// in programs with --weights for --evaluate-data with --data. --seed is set only in
/// programs with --data. Returns one sentence about a wrong value, else an empty text.
/// \param said application that has parsed the command line
/// \param to another application with the same options, which receives the values
std::string set_saved_options(const saved_run& saved, const CLI::App& said,
                              CLI::App& to);

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
