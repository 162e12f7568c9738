// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A model in several safetensors files, as Hugging Face's tools write large models. An
// index in the same folder names each tensor's file.
//
//   {"metadata": {..}, "weight_map": {"wte.weight":
//   "model-00001-of-00002.safetensors"}}

#include "models/input_file.hpp"

#include <tl/expected.hpp>

#include <filesystem>
#include <map>
#include <string>

namespace troupe {

/// The name of the file of each tensor, by the tensor's name.
using weight_map = std::map<std::string, std::string>;

/// True if a file is an index, not a file of tensors: the name ends with
/// `.safetensors.index.json`, or the content is JSON.
bool is_index(const std::filesystem::path& path, const input_file& file);

/// The files that an index names. The error is the end of a sentence about the index.
/// Errors include an index without a `weight_map` of tensors, and the name of a file
/// that is no .safetensors file of the index's folder.
tl::expected<weight_map, std::string> read_index(const input_file& index);

/// The file of weights at a path: the path itself, or for a folder one of the folder's
/// files. A folder's file is `model.safetensors`, or else the index of that name, or
/// else the only index, or else the only file of tensors. On error one sentence.
tl::expected<std::filesystem::path, std::string>
weights_at(const std::filesystem::path& path);

} // namespace troupe
