// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/init_options.hpp"

#include "models/hugging_face.hpp"
#include "models/safetensors.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// The options of a model that a file of weights may decide.
constexpr std::string_view model_names[] = {
  "--model", "--layers", "--d-model", "--heads",         "--seq",
  "--vocab", "--tied",   "--experts", "--shared-expert", "--expert-top-k"};

/// A value for each option that a file decides.
using option_values = std::vector<std::pair<std::string, std::string>>;

option_values values_of(const gpt2_config& config) {
  option_values result{{"--heads", std::to_string(config.heads)},
                       {"--tied", config.tied ? "true" : "false"}};
  const auto add = [&](const char* option, const std::optional<std::int64_t>& value) {
    if (value)
      result.emplace_back(option, std::to_string(*value));
  };
  add("--layers", config.layers);
  add("--d-model", config.width);
  add("--seq", config.length);
  add("--vocab", config.words);
  return result;
}

option_values values_of(const file_metadata& metadata) {
  option_values result;
  for (const auto& [name, value] : metadata)
    if (std::ranges::find(model_names, name) != std::end(model_names))
      result.emplace_back(name, value);
  return result;
}

/// The options that a user typed, and those that get values of files.
struct both_options {
  /// Null: neither has a value.
  const CLI::Option* with_value(const std::string& name) const {
    for (const CLI::App* app : {&said, static_cast<const CLI::App*>(&to)})
      if (const auto* option = app->get_option_no_throw(name);
          option != nullptr && option->count() > 0)
        return option;
    return nullptr;
  }

  const CLI::App& said;
  CLI::App& to;
};

/// Whether the model is a gpt as far as the user or a file said.
bool may_be_gpt(const both_options& options) {
  const auto* const model = options.with_value("--model");
  return model == nullptr || model->as<std::string>() == "gpt";
}

/// Sets an option that has no value yet. Returns the sentence about a value that is no
/// value of it, or is not the user's.
/// \param file that says the value
std::string take(const both_options& options, const std::string& name,
                 const std::string& value, const std::string& file) {
  auto* const option = options.to.get_option_no_throw(name);
  const bool by_gate =
    name == "--expert-top-k" && options.with_value("--gate") != nullptr;
  if (option == nullptr || by_gate)
    return {};
  try {
    if (const auto* const typed = options.with_value(name); typed == nullptr) {
      option->add_result(value);
      option->run_callback();
    } else if (name == "--heads" && typed->as<std::string>() != value) {
      return file + " says --heads " + value + ", and --heads is "
             + typed->as<std::string>() + ": leave it out";
    }
  } catch (const CLI::ParseError&) {
    return file + " says " + name + " " + value
           + ", which is no value of that option: say " + name + " yourself";
  }
  return {};
}

/// \param source the file that says the values
std::string take_all(const both_options& options, const option_values& values,
                     const std::string& source) {
  for (const auto& [name, value] : values)
    if (auto wrong = take(options, name, value, source); !wrong.empty())
      return wrong;
  return {};
}

std::string take_config(const both_options& options, const std::string& weights,
                        const file_metadata& metadata) {
  if (!may_be_gpt(options))
    return {};
  const auto config = read_config(weights, metadata);
  if (!config)
    return config.error();
  return *config ? take_all(options, values_of(**config), (*config)->path.string())
                 : "";
}

} // namespace

std::string take_options_of_init(const CLI::App& said, CLI::App& to,
                                 const std::string& init) {
  const auto file = safetensors_file::open(init);
  if (!file)
    return {}; // set_up says what is wrong
  const auto values = values_of(file->metadata());
  return values.empty() ? take_config({said, to}, init, file->metadata())
                        : take_all({said, to}, values, init);
}

std::string take_options_of_config(const CLI::App& said, CLI::App& to,
                                   const std::string& weights) {
  std::error_code unknown;
  if (weights.empty() || std::filesystem::is_directory(weights, unknown))
    return {};
  const auto file = safetensors_file::open(weights);
  if (!file)
    return file.error();
  return take_config({said, to}, weights, file->metadata());
}

} // namespace troupe
