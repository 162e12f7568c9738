// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Reading and writing of files in the safetensors format.

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

/// The description of a tensor in a file's header.
struct stored_tensor {
  std::string name;
  std::string type; ///< "F32", "BF16", ...
  std::vector<std::int64_t> dims;
  std::int64_t begin;   ///< First byte, counted from the start of the file.
  std::int64_t end;     ///< One past the last byte.
  std::size_t file = 0; ///< Index of the file, among the files of a model.

  /// True if read() supports the tensor's type: is_readable_type().
  bool is_readable() const;

  std::int64_t values() const;
};

/// The metadata that a file holds besides tensors.
using file_metadata = std::map<std::string, std::string>;

/// A safetensors file, or a model's several files with an index. The headers have been
/// read and found sound: each is a JSON object of tensors. The tensors fill the rest of
/// the file without overlaps or gaps. (huggingface.co/docs/safetensors, "Format")
class safetensors_file {
public:
  /// Opens a model's weights, and checks the headers of all files.
  /// \param path of a file of tensors, of an index (safetensors_index.hpp), or of a
  /// folder that has a file of either kind
  /// \return on error one sentence: a file is missing, is of another format, or is
  /// damaged; or two files have a tensor of the same name
  /// \throws std::runtime_error if a file becomes shorter meanwhile, or reading fails
  static tl::expected<safetensors_file, std::string>
  open(const std::filesystem::path& path);

  /// The path of the opened file, also where open() was called with the file's folder.
  const std::filesystem::path& path() const { return path_; }

  /// The tensors of all files, in order of the files' names.
  const std::vector<stored_tensor>& tensors() const { return tensors_; }

  /// The metadata of all files of tensors; values that are not text are left out. If
  /// several files have a key, the last file's value counts. The metadata of an index
  /// is not read.
  const file_metadata& metadata() const { return metadata_; }

  /// The tensor of this name, owned by this object; null if there is none.
  const stored_tensor* find(const std::string& name) const;

  /// Reads values of a tensor as fp32, from index `first` on.
  /// \pre tensor.is_readable()
  /// \throws std::runtime_error if the file cannot be read any more
  void read(const stored_tensor& tensor, std::int64_t first,
            std::span<float> values) const;

private:
  explicit safetensors_file(std::filesystem::path path) : path_(std::move(path)) {
    // nop
  }

  /// Adds the tensors of a file. Returns one sentence if the file is damaged, or if an
  /// earlier file has a tensor of the same name; else an empty string.
  std::string add(input_file file, const std::filesystem::path& path);

  /// Adds the files that the index names. Returns one sentence on error; else an empty
  /// string.
  std::string add_indexed(const input_file& index);

  std::filesystem::path path_;
  std::vector<input_file> files_;
  std::vector<stored_tensor> tensors_;
  file_metadata metadata_;
};

/// A tensor to write; the caller owns the values.
struct tensor_to_store {
  std::string name;
  std::vector<std::int64_t> dims;
  const float* values;
  precision stored = precision::fp32; ///< bf16: values are rounded as by bf16_of.
};

/// The header of a file of these tensors, without the 8 bytes of the header's length.
/// The header's metadata also has "format": "pt", unless `metadata` has this key.
std::string safetensors_header(std::span<const tensor_to_store> tensors,
                               const file_metadata& metadata);

/// Writes the whole file or nothing (whole_file.hpp). Returns empty on success, else
/// one sentence.
/// \param on_complete called when all data is on the disk, just before the file
/// replaces the older file. Replacing may still fail
std::string write_safetensors(const std::filesystem::path& path,
                              std::span<const tensor_to_store> tensors,
                              const file_metadata& metadata = {},
                              const std::function<void()>& on_complete = {});

} // namespace troupe
