// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/bf16.hpp"
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

  /// Whether it is F32 or BF16, which files of weights have.
  bool is_readable() const { return type == "F32" || type == "BF16"; }

  std::int64_t values() const;
};

/// What a file says of itself besides its tensors.
using file_metadata = std::map<std::string, std::string>;

/// A safetensors file whose header has been read and found sound: a JSON object of
/// tensors that fill the rest of the file without overlaps or gaps.
/// (huggingface.co/docs/safetensors, "Format")
class safetensors_file {
public:
  /// On error says in one sentence what is wrong with the file.
  static tl::expected<safetensors_file, std::string>
  open(const std::filesystem::path& path);

  const std::vector<stored_tensor>& tensors() const { return tensors_; }

  /// What is no text is left out.
  const file_metadata& metadata() const { return metadata_; }

  /// Null if there is none of that name.
  const stored_tensor* find(const std::string& name) const;

  /// Reads values of a tensor, from number `first` on; those of BF16 become the same
  /// values of fp32. \pre is_readable() \throws std::runtime_error if the file cannot
  /// be read any more
  void read(const stored_tensor& tensor, std::int64_t first,
            std::span<float> values) const;

private:
  explicit safetensors_file(input_file file) : file_(std::move(file)) {
    // nop
  }

  input_file file_;
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
