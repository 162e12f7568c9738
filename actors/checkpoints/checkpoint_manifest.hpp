// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/saved_piece.hpp"
#include "models/data_identity.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// What decides the numbers of a training, besides its network.
struct training_facts {
  std::map<std::string, std::string> options; ///< Values by their names: "--lr".
  std::optional<data_identity> data;          ///< Absent if the data has none.
};

/// What a checkpoint's manifest says.
struct checkpoint_facts {
  int batches = 0;                   ///< That the training has been through,
  std::int64_t samples = 0;          ///< and theirs.
  int older = 0;                     ///< Versions besides the newest.
  int moments = 0;                   ///< Of the optimizer.
  std::vector<std::int64_t> updates; ///< Of each layer.
  /// Absent from manifests that were written before these were kept.
  std::optional<training_facts> training = {};

  /// A tensor of a file: values of an array of the network.
  struct tensor {
    std::string name; ///< In the file.
    saved_array of;
    std::vector<std::int64_t> dims; ///< Of the whole parameter,
    saved_piece piece;              ///< and what the tensor has of it.
  };

  /// What one stage saved: a safetensors file.
  struct file {
    std::string name;
    std::int64_t bytes;
    std::uint64_t sum; ///< XXH3 of its bytes, 64 bits.
    std::vector<tensor> tensors;
  };
  std::vector<file> files;
};

/// A sentence about a checkpoint.
struct broken_checkpoint : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A tensor's name in its file: the parameter's, "moment-0/" or the like before it.
std::string tensor_name(const saved_array& array, const std::string& parameter);

/// The manifest as JSON. Of a tensor it says the whole parameter's name and shape, and
/// what of it is there: `rows` and `columns` of the parameter as a matrix, its last
/// dimension across, and of these values, row by row, those from `first` on. What is
/// left out is all. It ends with a sum of what it says.
std::string manifest_of(const checkpoint_facts& facts);

/// The identity of data as a manifest has it: a JSON object in one line.
std::string manifest_text(const data_identity& data);

/// The same as a value again. \throws broken_checkpoint
data_identity data_identity_in(const std::string& manifest_text);

/// What a manifest says; that its files are so is another question.
/// \throws broken_checkpoint
checkpoint_facts read_manifest(const std::filesystem::path& file);
checkpoint_facts facts_in(const std::string& manifest);

} // namespace troupe
