#pragma once

#include "models/network.hpp"

#include <filesystem>
#include <string>

namespace troupe {

/// The config that write_config writes beside these weights; empty if it writes none.
std::filesystem::path config_beside(const std::filesystem::path& weights,
                                    const model_options& model);

/// Writes the `config.json` with which Hugging Face's transformers read a gpt's weights
/// as they are, beside a file that is called `model.safetensors`: under that name alone
/// they look for it. They tie the head to the embedding unless the config says
/// otherwise, and lose what the file has of a head without a word (transformers before
/// version 5); so of a model that is not tied it says otherwise.
///
/// Of a config of a GPT-2 that is there already, what it says besides stays; any other
/// is left alone, and so is every file beside other weights. Empty if all went well,
/// else one sentence.
std::string write_config(const std::filesystem::path& weights,
                         const model_options& model);

} // namespace troupe
