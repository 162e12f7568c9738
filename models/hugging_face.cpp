// SPDX-License-Identifier: BSD-3-Clause
#include "models/hugging_face.hpp"

#include "models/input_file.hpp"
#include "models/whole_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;
using problem = tl::unexpected<std::string>;
namespace fs = std::filesystem;

constexpr const char* file_name = "config.json";

/// A key of GPT2Config that decides the function, and the values for which the function
/// is the one that troupe computes. A config without the key has the first value.
struct deciding_key {
  const char* name;
  std::vector<json> values;
};

const std::vector<deciding_key>& deciding_keys() {
  static const std::vector<deciding_key> keys{
    // Each of the following names is the tanh form.
    {"activation_function",
     {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate"}},
    {"layer_norm_epsilon", {1e-5}},
    {"scale_attn_weights", {true, 1}},
    {"scale_attn_by_inverse_layer_idx", {false, nullptr, 0}},
    {"add_cross_attention", {false, nullptr, 0}},
    {"pruned_heads", {json::object(), nullptr}},
    {"quantization_config", {nullptr, json::object()}}};
  return keys;
}

/// A size under the name in GPT2Config, and under the name that every config of
/// transformers has for the size. The second name comes first in such configs.
struct size_key {
  const char* name;
  const char* alias;
};

constexpr size_key n_layer{"n_layer", "num_hidden_layers"},
  n_embd{"n_embd", "hidden_size"}, n_head{"n_head", "num_attention_heads"},
  n_positions{"n_positions", "max_position_embeddings"},
  vocab_size{"vocab_size", "vocab_size"};

bool is_gpt2(const json& config) {
  if (config.contains("model_type"))
    return config["model_type"] == "gpt2";
  return config.contains(n_head.name); // as in files of 2019
}

/// The JSON object in a file; the error is the end of a sentence about the file.
tl::expected<json, std::string> object_in(const fs::path& path) {
  constexpr std::int64_t largest = 1 << 20;
  const auto file = input_file::open(path, "the config");
  if (!file)
    return problem{file.error()};
  if (file->size() > largest)
    return problem{"it is larger than 1 MiB"};
  auto config = json::parse(file->content(), nullptr, false);
  if (!config.is_object())
    return problem{"it is not a JSON object"};
  return config;
}

/// The GPT-2's config in a file; the error is the end of a sentence about the file.
tl::expected<json, std::string> gpt2_in(const fs::path& path) {
  auto config = object_in(path);
  if (config && !is_gpt2(*config))
    return problem{config->contains("model_type")
                     ? "its model_type is " + (*config)["model_type"].dump()
                     : "it has no model_type"};
  return config;
}

/// A size in a config; absent if the config does not give the size. The error is a text
/// of the key and the key's value.
tl::expected<std::optional<std::int64_t>, std::string> size_of(const json& config,
                                                               const size_key& key) {
  const auto* const name = config.contains(key.alias) ? key.alias : key.name;
  if (!config.contains(name))
    return std::nullopt;
  const auto& value = config[name];
  constexpr std::int64_t most = 1 << 30;
  if (!value.is_number_unsigned() || value < 1 || value > most)
    return problem{std::string{name} + " is " + value.dump()
                   + ", and a whole number above 0 is allowed"};
  return value.get<std::int64_t>();
}

/// One sentence about a key whose value asks for another function; empty if no key
/// does.
std::string other_function(const json& config) {
  for (const auto& [name, values] : deciding_keys())
    if (config.contains(name)
        && std::ranges::find(values, config[name]) == values.end())
      return std::string{name} + " is " + config[name].dump()
             + "; troupe computes a GPT-2 only with " + values.front().dump();
  if (!config.contains("n_inner") || config["n_inner"].is_null())
    return {};
  const auto width = size_of(config, n_embd);
  if (!width || !*width || config["n_inner"] != 4 * **width)
    return "n_inner is " + config["n_inner"].dump()
           + "; troupe supports only 4 * n_embd";
  return {};
}

tl::expected<gpt2_config, std::string> sizes_of(const json& config) {
  gpt2_config result;
  std::optional<std::int64_t> heads;
  for (const auto& [key, target] : {std::pair{n_layer, &result.layers},
                                    {n_embd, &result.width},
                                    {n_head, &heads},
                                    {n_positions, &result.length},
                                    {vocab_size, &result.words}}) {
    const auto size = size_of(config, key);
    if (!size)
      return problem{size.error()};
    *target = *size;
  }
  result.heads = heads.value_or(result.heads);
  const auto says = [&](const char* key, bool usual) {
    const auto value = config.value(key, json(usual));
    return value == true || value == 1;
  };
  result.tied = says("tie_word_embeddings", true);
  result.upcasts = says("reorder_and_upcast_attn", false);
  return result;
}

/// The existing config; empty if there is none. The error is the end of a sentence
/// about the file.
tl::expected<json, std::string> older_config(const fs::path& path) {
  std::error_code unknown;
  if (fs::exists(path, unknown))
    return gpt2_in(path);
  return json::object();
}

/// The error about a config that cannot be written. \param why the config is not a
/// GPT-2's
std::string config_write_error(const fs::path& path, const std::string& why) {
  return "cannot write " + path.string() + ": " + why
         + "; save the weights into another folder, or under another name than "
           "model.safetensors";
}

} // namespace

tl::expected<std::optional<gpt2_config>, std::string>
read_config(const fs::path& weights, const file_metadata& metadata) {
  const auto path = weights.parent_path() / file_name;
  const bool named = weights.filename() == "model.safetensors"
                     || weights.filename() == "model.safetensors.index.json",
             ours = metadata.contains("--model");
  std::error_code unknown;
  const auto kind = fs::symlink_status(path, unknown).type(); // broken links count
  if ((ours && !named) || kind == fs::file_type::not_found)
    return std::nullopt;
  const auto refuse = [&](const std::string& why) {
    return problem{path.string() + ": " + why};
  };
  const auto config = gpt2_in(path);
  if (!config && named && !ours)
    return refuse(
      config.error() + "; weights named " + weights.filename().string()
      + " need a GPT-2's config.json: correct the config, or rename the weights");
  if (!config)
    return std::nullopt;
  if (auto error = other_function(*config); !error.empty())
    return refuse(error);
  auto sizes = sizes_of(*config);
  if (!sizes)
    return refuse(sizes.error());
  sizes->path = path;
  return std::move(*sizes);
}

std::string mismatch(const gpt2_config& config, const model_options& model) {
  const auto refuse = [&](const std::string& why) {
    return config.path.string() + ": " + why;
  };
  const auto other_size = [&](const char* key, const char* option,
                              std::int64_t expected, std::int64_t actual) {
    const auto number = std::to_string(expected);
    return refuse(std::string{key} + " is " + number + ", and " + option + " is "
                  + std::to_string(actual) + ": say " + option + " " + number
                  + ", or leave " + option + " out");
  };
  if (const auto n = config.layers.value_or(model.layers); n != model.layers)
    return other_size(n_layer.name, "--layers", n, model.layers);
  if (const auto n = config.width.value_or(model.width); n != model.width)
    return other_size(n_embd.name, "--d-model", n, model.width);
  if (config.heads != model.heads)
    return other_size(n_head.name, "--heads", config.heads, model.heads);
  if (const auto n = config.words.value_or(model.words); n != model.words)
    return other_size(vocab_size.name, "--vocab", n, model.words);
  if (const auto n = config.length.value_or(model.length); n < model.length)
    return other_size(n_positions.name, "--seq", n, model.length);
  if (config.upcasts && model.stored == precision::bf16)
    return refuse("reorder_and_upcast_attn is true, which troupe computes only with "
                  "--precision fp32");
  return {};
}

fs::path config_beside(const fs::path& weights, const model_options& model) {
  if (model.model != "gpt" || weights.filename() != "model.safetensors")
    return {};
  return weights.parent_path() / file_name;
}

std::string foreign_config(const fs::path& weights, const model_options& model) {
  const auto path = config_beside(weights, model);
  const auto config =
    path.empty() ? tl::expected<json, std::string>{json::object()} : older_config(path);
  return config ? "" : config_write_error(path, config.error());
}

std::string write_config(const fs::path& weights, const model_options& model) {
  const auto path = config_beside(weights, model);
  if (path.empty())
    return {};
  auto config = older_config(path);
  if (!config)
    return config_write_error(path, config.error());
  config->update({{"model_type", "gpt2"},
                  {"architectures", {"GPT2LMHeadModel"}},
                  {"tie_word_embeddings", model.tied},
                  {"vocab_size", model.words},
                  {"n_positions", model.length},
                  {"n_ctx", model.length},
                  {"n_embd", model.width},
                  {"n_layer", model.layers},
                  {"n_head", model.heads},
                  {"n_inner", nullptr}, // 4 n_embd
                  {"activation_function", "gelu_new"},
                  {"layer_norm_epsilon", 1e-5}});
  for (const auto& [name, values] : deciding_keys())
    if (config->contains(name))
      (*config)[name] = values.front();
  for (const auto& key : {n_layer, n_embd, n_head, n_positions})
    config->erase(key.alias);
  // The file of weights gives the type of its values; troupe upcasts nothing.
  for (const char* name : {"torch_dtype", "dtype", "quantization_config", "auto_map",
                           "reorder_and_upcast_attn"})
    config->erase(name);
  constexpr std::int64_t end_of_text = 50256; // GPT-2's, and the default
  for (const char* name : {"bos_token_id", "eos_token_id"})
    if (!config->contains(name) && model.words <= end_of_text)
      (*config)[name] = nullptr;
  for (const char* name : {"resid_pdrop", "embd_pdrop", "attn_pdrop"})
    (*config)[name] = 0.0; // troupe has no dropout
  return write_whole_file(path, config->dump(2) + "\n");
}

} // namespace troupe
