#include "models/hugging_face.hpp"

#include "models/input_file.hpp"
#include "models/whole_file.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

/// The config that is there: empty if there is none, absent if it is no GPT-2's.
std::optional<json> older_config(const std::filesystem::path& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown))
    return json::object();
  const auto file = input_file::open(path, "the config");
  if (!file)
    return {};
  std::string text(static_cast<std::size_t>(file->size()), '\0');
  file->read(0, text.data(), file->size());
  auto config = json::parse(text, nullptr, false);
  if (!config.is_object() || config.value("model_type", json{}) != "gpt2")
    return {};
  return config;
}

} // namespace

std::filesystem::path config_beside(const std::filesystem::path& weights,
                                    const model_options& model) {
  if (model.model != "gpt" || weights.filename() != "model.safetensors")
    return {};
  return weights.parent_path() / "config.json";
}

std::string write_config(const std::filesystem::path& weights,
                         const model_options& model) {
  const auto path = config_beside(weights, model);
  if (path.empty())
    return {};
  auto config = older_config(path);
  if (!config)
    return {};
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
  for (const char* name : {"torch_dtype", "dtype"})
    config->erase(name);                      // the file of weights says what they are
  constexpr std::int64_t end_of_text = 50256; // GPT-2's, and the default
  for (const char* name : {"bos_token_id", "eos_token_id"})
    if (!config->contains(name) && model.words <= end_of_text)
      (*config)[name] = nullptr;
  for (const char* name : {"resid_pdrop", "embd_pdrop", "attn_pdrop"})
    if (!config->contains(name))
      (*config)[name] = 0.0; // troupe drops nothing
  return write_whole_file(path, config->dump(2) + "\n");
}

} // namespace troupe
