// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/init_options.hpp"

#include "experiments/options/saved_options.hpp"
#include "models/hugging_face.hpp"
#include "models/safetensors.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// The options of a model, and of its data, that a file of weights may set.
constexpr std::string_view decided_names[] = {
  "--model",         "--layers",       "--d-model", "--heads",
  "--seq",           "--vocab",        "--tied",    "--experts",
  "--shared-expert", "--expert-top-k", "--data",    "--evaluate-data"};

/// The value of an option that a file sets.
struct decided_value {
  std::string option, value;
  /// The key in a config. The value there and the recorded value must be equal.
  std::string key = {};
};
using option_values = std::vector<decided_value>;

option_values values_of(const gpt2_config& config) {
  option_values result{{"--heads", std::to_string(config.heads), "n_head"},
                       {"--tied", config.tied ? "true" : "false"}};
  const auto add = [&](const char* option, const std::optional<std::int64_t>& value,
                       const char* key) {
    if (value)
      result.push_back({option, std::to_string(*value), key});
  };
  add("--layers", config.layers, "n_layer");
  add("--d-model", config.width, "n_embd");
  add("--seq", config.length, ""); // the config has the length of the longest sequence
  add("--vocab", config.words, "vocab_size");
  return result;
}

option_values values_of(const file_metadata& metadata) {
  option_values result;
  for (const auto& [name, value] : metadata)
    if (std::ranges::find(decided_names, name) != std::end(decided_names))
      result.push_back({name, value});
  return result;
}

/// The current value of an option; absent: none.
std::optional<std::string> value_in(const CLI::App& app, const std::string& name) {
  const auto* const option = app.get_option_no_throw(name);
  if (option == nullptr || option->count() == 0)
    return {};
  return option->as<std::string>();
}

/// The options that a user typed, and the options that receive values of files.
struct both_options {
  /// Absent: neither has a value.
  std::optional<std::string> value(const std::string& name) const {
    const auto typed = value_in(said, name);
    return typed ? typed : value_in(to, name);
  }

  const CLI::App& said;
  CLI::App& to;
};

/// Whether the model is a gpt, as far as the user or a file says.
bool may_be_gpt(const both_options& options) {
  return options.value("--model").value_or("gpt") == "gpt";
}

/// Sets an option that has no value yet. Returns the sentence about a value that the
/// option does not allow.
/// \param file that records the value
std::string set_option(const both_options& options, const std::string& name,
                       const std::string& value, const std::string& file) {
  auto* const option = options.to.get_option_no_throw(name);
  if (name == "--evaluate-data" && value_in(options.said, "--data"))
    return {};
  const bool by_gate = name == "--expert-top-k" && options.value("--gate").has_value();
  if (option == nullptr || by_gate || options.value(name))
    return {};
  try {
    option->add_result(value);
    option->run_callback();
  } catch (const CLI::ParseError&) {
    return file + " records " + name + " " + value + ", which " + name
           + " does not allow: give another " + name;
  }
  return {};
}

/// \param source the file that records the values
std::string set_options(const both_options& options, const option_values& values,
                        const std::string& source) {
  for (const auto& decided : values)
    if (auto error = set_option(options, decided.option, decided.value, source);
        !error.empty())
      return error;
  return {};
}

/// The sentence about a config that contradicts the metadata of the weights beside it;
/// empty if none does. Options that the user typed are not compared here, but by
/// weights_from.
std::string conflicting_config_error(const both_options& options,
                                     const std::string& weights,
                                     const gpt2_config& config) {
  for (const auto& [option, value, key] : values_of(config))
    if (const auto current = value_in(options.to, option);
        !key.empty() && current && *current != value && !value_in(options.said, option))
      return config.path.string() + " records " + key + " " + value + ", and " + weights
             + " records " + option + " " + *current + ": correct or remove the config";
  return {};
}

std::string apply_config(const both_options& options, const std::string& weights,
                         const file_metadata& metadata) {
  if (!may_be_gpt(options))
    return {};
  const auto config = read_config(weights, metadata);
  if (!config)
    return config.error();
  if (!*config)
    return {};
  if (auto error = conflicting_config_error(options, weights, **config); !error.empty())
    return error;
  return set_options(options, values_of(**config), (*config)->path.string());
}

} // namespace

std::string set_options_from_init(const CLI::App& said, CLI::App& to,
                                  const std::string& init) {
  const auto file = safetensors_file::open(init);
  if (!file)
    return {}; // set_up reports the mistake
  const auto values = values_of(file->metadata());
  for (const auto& recorded : values)
    if (auto error = typed_option_error(said, recorded.option, recorded.value, init);
        !error.empty())
      return error;
  if (auto error = set_options({said, to}, values, init); !error.empty())
    return error;
  return apply_config({said, to}, file->path().string(), file->metadata());
}

std::string set_options_from_config(const CLI::App& said, CLI::App& to,
                                    const std::string& weights) {
  if (weights.empty() || !is_of_weights(weights))
    return {};
  const auto file = safetensors_file::open(weights);
  if (!file)
    return file.error();
  for (const auto& recorded : values_of(file->metadata()))
    if (auto error = typed_option_error(said, recorded.option, recorded.value, weights);
        !error.empty())
      return error;
  return apply_config({said, to}, file->path().string(), file->metadata());
}

} // namespace troupe
