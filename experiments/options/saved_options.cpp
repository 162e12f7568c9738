// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/saved_options.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "experiments/options/option_catalog.hpp"
#include "models/hugging_face.hpp"
#include "models/safetensors_index.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

saved_run saved_run_in(const std::filesystem::path& checkpoint,
                       const checkpoint_facts& facts) {
  saved_run result{checkpoint.string(), {}, {}};
  if (facts.training) {
    result.options = facts.training->options;
    result.data = facts.training->data;
  }
  return result;
}

/// The key of the data's identity in a file of weights.
constexpr const char* identity_key = "data_identity";

/// Reads the record of a run in a file of weights.
tl::expected<saved_run, std::string> saved_run_of_file(const std::string& path) {
  const auto file = safetensors_file::open(path);
  if (!file)
    return problem{file.error()};
  saved_run result{path, file->metadata(), {}};
  if (const auto identity = result.options.extract(identity_key))
    try {
      result.data = data_identity_in(identity.mapped());
    } catch (const broken_checkpoint& error) {
      return problem{path + ": its " + identity_key + " is damaged: " + error.what()};
    }
  return result;
}

} // namespace

file_metadata facts_to_save(const options& o,
                            const std::optional<data_identity>& data) {
  auto result = options_to_save(o);
  if (data)
    result[identity_key] = manifest_text(*data);
  return result;
}

file_metadata options_to_save(const options& o) {
  return recorded_options(o, nullptr);
}

bool is_of_weights(const std::string& location) {
  const std::filesystem::path path{location};
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown))
    return true;
  return checkpoints_in(path).empty() && !is_checkpoint(path)
         && (weights_at(path)
             || std::filesystem::exists(path / "config.json", unknown));
}

tl::expected<saved_run, std::string> saved_run_of(const std::string& location) {
  if (is_of_weights(location))
    return saved_run_of_file(location);
  const auto checkpoints = checkpoints_at(location);
  for (const auto& checkpoint : checkpoints)
    if (const auto facts = check_checkpoint(checkpoint))
      return saved_run_in(checkpoint, *facts);
  for (const auto& checkpoint :
       checkpoints) // none is whole, which the reader of the values reports
    try {
      return saved_run_in(checkpoint, read_manifest(checkpoint / manifest_name));
    } catch (const broken_checkpoint&) { // NOLINT(bugprone-empty-catch)
    }
  return saved_run{location, {}, {}};
}

namespace {

/// Whether the recorded text is a value of the option at all; a damaged file may hold
/// other text.
bool is_value_of(std::string_view option, const std::string& value) {
  return option == "--model"
         || (!value.empty() && std::ranges::all_of(value, [](unsigned char c) {
              return std::isdigit(c) != 0;
            }));
}

/// The current value of an option; absent: none.
std::optional<std::string> value_in(const CLI::App& app, const std::string& name) {
  const auto* const option = app.get_option_no_throw(name);
  if (option == nullptr || option->count() == 0)
    return {};
  return option->as<std::string>();
}

/// Sets an option to a recorded value. Returns the sentence about a value that the
/// option does not allow.
/// \param file that records the value
std::string set_option(CLI::Option& option, const std::string& name,
                       const std::string& value, const std::string& file) {
  try {
    option.add_result(value);
    option.run_callback();
    return {};
  } catch (const CLI::ParseError&) {
    return file + " records " + name + " " + value + ", which " + name
           + " does not allow: give another " + name;
  }
}

/// The sentence about a typed option of the network whose recorded value is another;
/// else an empty text.
/// \param from the file or checkpoint that records the values
std::string typed_network_error(const CLI::App& said, const file_metadata& recorded,
                                const std::string& from) {
  for (const auto& [option, value] : recorded)
    if (const auto typed = value_in(said, option);
        typed && *typed != value && is_value_of(option, value)
        && files_with(option) == recorded_in::network)
      return from + " records " + option + " " + value + ", and this command has "
             + option + " " + *typed + ": leave " + option + " out";
  return {};
}

} // namespace

std::string set_saved_options(const saved_run& saved, const CLI::App& said,
                              CLI::App& to) {
  const auto says = [&](const std::string& name) {
    return value_in(said, name).has_value();
  };
  // --seed counts with --data only, and sizes with the number of microbatches; --gate
  // is a preset of two options.
  const auto is_left_out = [&](const std::string& name) {
    if (name == "--seed")
      return said.get_option_no_throw("--data") == nullptr;
    if (name == "--evaluate-data") // in programs that only evaluate, on other data
      return says("--data") && said.get_option_no_throw("--weights") != nullptr;
    if (name == "--microbatch-sizes")
      return says("--microbatches");
    return says("--gate") && (name == "--expert-top-k" || name == "--capacity");
  };
  const bool evaluates = said.get_option_no_throw("--weights") != nullptr;
  if (evaluates) // the recorded network
    if (auto error = typed_network_error(said, saved.options, saved.from);
        !error.empty())
      return error;
  for (const auto& [name, value] : saved.options) {
    auto* const option = to.get_option_no_throw(name);
    if (option == nullptr || value.empty() || says(name) || is_left_out(name)
        || files_with(name) == recorded_in::nothing)
      continue;
    if (auto error = set_option(*option, name, value, saved.from); !error.empty())
      return error;
  }
  return {};
}

namespace {

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

/// Sets the options that have no value yet. Returns the sentence about a value that an
/// option does not allow.
/// \param source the file that records the values
std::string set_options(const both_options& options, const option_values& values,
                        const std::string& source) {
  for (const auto& [name, value, key] : values) {
    auto* const option = options.to.get_option_no_throw(name);
    const bool by_data =
      name == "--evaluate-data" && value_in(options.said, "--data").has_value();
    const bool by_gate =
      name == "--expert-top-k" && options.value("--gate").has_value();
    if (option == nullptr || by_data || by_gate || options.value(name))
      continue;
    if (auto error = set_option(*option, name, value, source); !error.empty())
      return error;
  }
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
  auto error = typed_network_error(said, file->metadata(), init);
  option_values values;
  for (const auto& [name, value] : file->metadata())
    if (files_with(name) >= recorded_in::init)
      values.push_back({name, value});
  if (error.empty())
    error = set_options({said, to}, values, init);
  return error.empty()
           ? apply_config({said, to}, file->path().string(), file->metadata())
           : error;
}

std::string set_options_from_config(const CLI::App& said, CLI::App& to,
                                    const std::string& weights) {
  if (weights.empty() || !is_of_weights(weights))
    return {};
  const auto file = safetensors_file::open(weights);
  if (!file)
    return file.error();
  const auto error = typed_network_error(said, file->metadata(), weights);
  return error.empty()
           ? apply_config({said, to}, file->path().string(), file->metadata())
           : error;
}

} // namespace troupe
