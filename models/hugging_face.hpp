// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The `config.json` in the folder of a GPT-2's weights, as Hugging Face's transformers
// read and write it.

#include "models/network.hpp"
#include "models/safetensors.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe {

/// Sizes in the `config.json` of a GPT-2. Sizes that the file leaves out are absent.
struct gpt2_config {
  std::filesystem::path path;
  std::optional<std::int64_t> layers, width, length, words;
  std::int64_t heads = 12; ///< 12 is GPT2Config's default.
  bool tied = true;        ///< `tie_word_embeddings`.
  bool upcasts = false;    ///< `reorder_and_upcast_attn`.
};

/// The config in the folder of a GPT-2's weights; absent if no config counts. A GPT-2's
/// config counts for a `model.safetensors` or its index, and for any other file whose
/// metadata lacks "--model". The error is one sentence: a key asks for a function that
/// troupe does not compute, or a size is no whole number from 1 to 2^30. A config of
/// another model is an error only next to a `model.safetensors` or its index, if the
/// metadata lacks "--model". A config that cannot be read counts as a config of another
/// model.
/// \param metadata of the file of weights; troupe writes "--model" there
tl::expected<std::optional<gpt2_config>, std::string>
read_config(const std::filesystem::path& weights, const file_metadata& metadata);

/// The first difference between a config and a gpt's options, as one sentence; empty if
/// the gpt computes the function that the config describes. A config with longer
/// sequences than the gpt's is no difference. `tied` is not compared: weights_from()
/// compares the tensors.
std::string mismatch(const gpt2_config& config, const model_options& model);

/// The path of the config that write_config writes next to the weights; empty if
/// write_config writes none.
std::filesystem::path config_beside(const std::filesystem::path& weights,
                                    const model_options& model);

/// One sentence if a file at config_beside() exists and is not a GPT-2's config that
/// can be read. Empty if write_config can update or create the file, or writes none.
/// Permissions to write are not checked.
std::string foreign_config(const std::filesystem::path& weights,
                           const model_options& model);

/// Writes the `config.json` with which Hugging Face's transformers read a gpt's weights
/// unchanged. Transformers look for a file of weights that is called
/// `model.safetensors`, and for no other name. Transformers tie the head to the
/// embedding unless the config says otherwise. Versions of transformers before 5 then
/// lose the file's head without a warning. So the config of a model that is not tied
/// says that the head is not tied.
///
/// Keys of an existing GPT-2's config stay, except the following keys. Keys of the
/// architecture, of sizes and of the computed function get the trained model's values,
/// and dropouts become 0. Absent token ids of begin and end become null if GPT-2's are
/// not in the vocabulary. Second names of sizes are removed, and so are keys of stored
/// types, of upcasting, of quantization and of other code. Another model's config stays
/// unchanged, and is an error. Writes nothing if config_beside() is empty. Returns
/// empty on success, else one sentence.
std::string write_config(const std::filesystem::path& weights,
                         const model_options& model);

} // namespace troupe
