// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/precision.hpp"
#include "models/input_file.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A tensor as a file describes it.
struct stored_tensor {
  std::string name;
  std::string type; ///< "F32", "BF16", ...
  std::vector<std::int64_t> dims;
  std::int64_t begin; ///< Bytes from the start of the file.
  std::int64_t end;
  std::size_t file = 0; ///< Of the files of a model, by number.

  /// Whether its type is one that weights are read as (float_types.hpp).
  bool is_readable() const;

  std::int64_t values() const;
};

/// What a file says of itself besides its tensors.
using file_metadata = std::map<std::string, std::string>;

/// A safetensors file, or a model's several files with their index, whose headers have
/// been read and found sound: each is a JSON object of tensors that fill the rest of
/// its file without overlaps or gaps. (huggingface.co/docs/safetensors, "Format")
class safetensors_file {
public:
  /// \param path of a file of tensors, of an index (safetensors_index.hpp), or of a
  /// folder that has one of both
  /// On error one sentence: a file is missing, is of another format, or is damaged.
  static tl::expected<safetensors_file, std::string>
  open(const std::filesystem::path& path);

  /// The file that was opened, also where open() was called with its folder.
  const std::filesystem::path& path() const { return path_; }

  /// Those of all files, in order of the files' names.
  const std::vector<stored_tensor>& tensors() const { return tensors_; }

  /// What is no text is left out.
  const file_metadata& metadata() const { return metadata_; }

  /// Null if there is none of that name.
  const stored_tensor* find(const std::string& name) const;

  /// Reads values of a tensor as fp32, from number `first` on. \pre is_readable()
  /// \throws std::runtime_error if the file cannot be read any more
  void read(const stored_tensor& tensor, std::int64_t first,
            std::span<float> values) const;

private:
  explicit safetensors_file(std::filesystem::path path) : path_(std::move(path)) {
    // nop
  }

  /// Adds the tensors of a file. Returns one sentence if it is damaged.
  std::string add(input_file file, const std::filesystem::path& path);

  /// Adds the files that the index names. Returns one sentence on error.
  std::string add_indexed(const input_file& index);

  std::filesystem::path path_;
  std::vector<input_file> files_;
  std::vector<stored_tensor> tensors_;
  file_metadata metadata_;
};

/// A tensor to write.
struct tensor_to_store {
  std::string name;
  std::vector<std::int64_t> dims;
  const float* values;
  precision stored = precision::fp32; ///< bf16: rounded as bf16_of does it.
};

/// The header of a file of these tensors, without its length.
std::string safetensors_header(std::span<const tensor_to_store> tensors,
                               const file_metadata& metadata);

/// Writes all of the file or nothing (whole_file.hpp). Empty on success, else what went
/// wrong. \param before called when all is written and about to take its place
std::string write_safetensors(const std::filesystem::path& path,
                              std::span<const tensor_to_store> tensors,
                              const file_metadata& metadata = {},
                              const std::function<void()>& before = {});

} // namespace troupe
