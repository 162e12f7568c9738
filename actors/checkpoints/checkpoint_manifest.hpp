// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data_identity.hpp"
#include "plan/saved_piece.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

// The manifest of a checkpoint: a JSON file with counts and options of the training,
// and the name, size, checksum and tensors of every file.

namespace troupe {

/// Options and data that decide the results of a training, besides the network.
struct training_facts {
  std::map<std::string, std::string> options; ///< Values by option name: "--lr".
  std::optional<data_identity> data;          ///< Absent if the data has no identity.
};

/// The contents of a checkpoint's manifest.
struct checkpoint_facts {
  int batches = 0;          ///< Batches that the training has completed.
  std::int64_t samples = 0; ///< Samples of these batches.
  int older = 0;            ///< Number of versions besides the newest.
  /// Names of the optimizer's state arrays. A manifest of an older version of troupe
  /// counts the arrays: their names are then moment-0, moment-1, ..
  std::vector<std::string> state = {};
  std::vector<std::int64_t> updates; ///< Number of updates of each layer.
  /// Absent if an older version of troupe wrote the manifest.
  std::optional<training_facts> training = {};

  /// A tensor of a file: values of one parameter in one array of the network.
  struct tensor {
    std::string name; ///< The tensor's name in the file.
    saved_array array;
    std::vector<std::int64_t> dims; ///< Dims of the whole parameter.
    saved_piece piece; ///< The piece of the parameter that the tensor stores.
  };

  /// The file that one stage saved, in the safetensors format.
  struct file {
    std::string name;
    std::int64_t bytes;
    std::uint64_t sum; ///< XXH3 of the file's bytes, 64 bits.
    std::vector<tensor> tensors;
  };
  std::vector<file> files;
};

/// An error in a checkpoint; `what()` is one sentence.
struct broken_checkpoint : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An error that proves no damage: files that the system cannot read now, or files of
/// another program or version, or under another name. Such files must stay.
struct undecided_checkpoint : broken_checkpoint {
  using broken_checkpoint::broken_checkpoint;
};

/// A tensor's name in the file: the parameter's name, with a prefix such as "mean/"
/// for other arrays than the newest parameters.
std::string tensor_name(const saved_array& array, const std::string& parameter);

/// Returns the manifest as JSON text, ending with a checksum of the contents. Each
/// tensor has the whole parameter's name and shape, and names the part that is stored.
/// `rows` and `columns` select from the parameter as a matrix, whose columns run along
/// the last dimension. The selected values are counted in row-major order: `first` is
/// the index of the first stored value, and `values` is the number of stored values. An
/// absent key selects everything.
std::string manifest_of(const checkpoint_facts& facts);

/// The identity of data in the manifest's format: a JSON object in one line.
std::string manifest_text(const data_identity& data);

/// Parses the result of `manifest_text`.
/// \throws broken_checkpoint if the text has another form
data_identity data_identity_in(const std::string& manifest_text);

/// Parses the manifest in a file. Does not check the files that the manifest names.
/// \throws undecided_checkpoint if the file cannot be read, is larger than 256 MiB, or
/// belongs to another program or version
/// \throws broken_checkpoint if the file has no manifest of this format, or has changed
/// (checksum)
checkpoint_facts read_manifest(const std::filesystem::path& file);

/// Parses the text of a manifest. Does not check the files that the manifest names.
/// \throws undecided_checkpoint if the text belongs to another program or version
/// \throws broken_checkpoint if the text is no manifest of this format, or has changed
/// (checksum)
checkpoint_facts facts_in(const std::string& manifest);

} // namespace troupe
