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
/// counts if it has a file of weights or a config.json, has no checkpoints, and is none
/// itself.
bool is_of_weights(const std::string& location);

/// Reads the record of a file of weights, or of a folder's newest whole checkpoint,
/// from which newest_checkpoint reads the values. If no checkpoint is whole, reads the
/// newest readable manifest. The record is empty if no manifest is readable. The error
/// is one sentence about the file of weights.
tl::expected<saved_run, std::string> saved_run_of(const std::string& location);

/// Sets options that a command line leaves out, and that a file may set, to the values
/// of a saved run. An option stays as it is if a related option is typed:
/// --expert-top-k and --capacity with --gate, --microbatch-sizes with --microbatches.
/// The same holds in programs with --weights for --evaluate-data with --data. --seed is
/// set only in programs with --data. Returns one sentence about a wrong value, else an
/// empty text.
/// \param said options of the command line
/// \param to the options of `said`, which receive values
std::string set_saved_options(const saved_run& saved, const CLI::App& said,
                              CLI::App& to);

} // namespace troupe
