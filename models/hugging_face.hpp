// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/network.hpp"
#include "models/safetensors.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe {

/// Sizes in the `config.json` of a GPT-2. Those that the file leaves out are absent.
struct gpt2_config {
  std::filesystem::path path;
  std::optional<std::int64_t> layers, width, length, words;
  std::int64_t heads = 12; ///< 12 is GPT2Config's default.
  bool tied = true;        ///< `tie_word_embeddings`.
  bool upcasts = false;    ///< `reorder_and_upcast_attn`.
};

/// The config in the folder of a GPT-2's weights; absent if none counts. It counts for
/// a `model.safetensors` or its index, and for any other file without options of
/// troupe. The error is one sentence: a key asks for a function that troupe does not
/// compute, or the config of a `model.safetensors` is of another model.
/// \param metadata of the file of weights
tl::expected<std::optional<gpt2_config>, std::string>
read_config(const std::filesystem::path& weights, const file_metadata& metadata);

/// The first difference between a config and a gpt's options, as one sentence; empty
/// if the gpt computes what the config describes. Longer sequences than the gpt's are
/// no difference.
std::string mismatch(const gpt2_config& config, const model_options& model);

/// The config that write_config writes beside these weights; empty if it writes none.
std::filesystem::path config_beside(const std::filesystem::path& weights,
                                    const model_options& model);

/// One sentence if the file at config_beside() is of another model; empty if
/// write_config can update or create it.
std::string foreign_config(const std::filesystem::path& weights,
                           const model_options& model);

/// Writes the `config.json` with which Hugging Face's transformers read a gpt's weights
/// as they are, beside a file that is called `model.safetensors`: under that name alone
/// they look for it. They tie the head to the embedding unless the config says
/// otherwise, and lose what the file has of a head without a word (transformers before
/// version 5); so of a model that is not tied it says otherwise.
///
/// A GPT-2's config that is there keeps its other keys, except those that decide the
/// function: these become the function that was trained. Another model's config stays,
/// and is the error. Empty if all went well, else one sentence.
std::string write_config(const std::filesystem::path& weights,
                         const model_options& model);

} // namespace troupe
