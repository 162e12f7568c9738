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

/// What a file of weights says of the run that made them, so that whoever reads it need
/// not: values of options by their names, "--layers".
file_metadata options_to_save(const options& o);

/// The same with the identity of the data that the run read, if the data has one.
file_metadata facts_to_save(const options& o, const std::optional<data_identity>& data);

/// What a file of weights or a checkpoint says of its run.
struct saved_run {
  std::string from;                  ///< The file or the checkpoint.
  file_metadata options;             ///< Values by their names: "--layers".
  std::optional<data_identity> data; ///< Absent if none was kept.
};

/// Whether a path leads to weights (safetensors.hpp), and not to checkpoints: a file,
/// or a folder as the Hub's, without checkpoints and with a file of weights or a
/// config.
bool is_of_weights(const std::string& place);

/// Reads a file of weights, or the manifest of a folder's newest checkpoint that is
/// whole: the one whose values newest_checkpoint reads. Where none is whole, the newest
/// manifest that can be read; empty without any. On error says what is wrong with the
/// file.
tl::expected<saved_run, std::string> saved_run_of(const std::string& place);

/// Gives options that a command line leaves out the values of a saved run. Returns what
/// is wrong with these, if anything.
/// \param said what the command line says \param to the same options, which get values
std::string take_saved_options(const saved_run& saved, const CLI::App& said,
                               CLI::App& to);

} // namespace troupe
