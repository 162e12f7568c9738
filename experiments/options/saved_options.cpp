// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/saved_options.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "experiments/options/parsing.hpp"
#include "models/safetensors_index.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

/// The options that a file may set. All others are excluded, so that the writer of a
/// file does not choose where results go.
constexpr std::string_view recordable_options[] = {
  "--model", "--layers", "--d-model", "--heads", "--seq", "--vocab", "--tied",
  "--experts", "--shared-expert", "--expert-top-k", "--data", "--evaluate-data",
  "--seed", "--precision",
  // Of checkpoints:
  "--batch", "--steps", "--microbatches", "--microbatch-sizes", "--sequence-lengths",
  "--optimizer", "--lr", "--lr-schedule", "--momentum", "--betas", "--eps",
  "--weight-decay", "--decay", "--clip", "--capacity", "--balance", "--gate-noise"};

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
  const auto& m = o.model;
  file_metadata result{{"--model", m.model},
                       {"--data", o.data.text},
                       {"--seed", std::to_string(o.data.seed)}};
  const auto add = [&](const char* option, auto value) {
    result[option] = std::to_string(value);
  };
  if (!o.data.evaluation.empty())
    result["--evaluate-data"] = o.data.evaluation;
  const bool reads_tokens = m.model == "gpt" || m.model == "moe";
  if (!is_lenet(m.model)) {
    add("--layers", m.layers);
    add("--d-model", m.width);
  }
  if (reads_tokens) {
    add("--heads", m.heads);
    add("--seq", m.length);
    add("--vocab", m.words);
  }
  if (m.tied)
    result["--tied"] = "true";
  if (m.model == "moe") {
    add("--experts", m.experts.count);
    add("--expert-top-k", m.experts.chosen);
    if (m.experts.shared)
      result["--shared-expert"] = "true";
  }
  if (o.run.products == precision::bf16)
    result["--precision"] = "bf16";
  return result;
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

/// Options of the network that a file of weights determines.
constexpr std::string_view network_names[] = {"--model", "--layers", "--d-model",
                                              "--heads", "--experts"};

/// Whether the recorded text is a value of the option at all; a damaged file may hold
/// other text.
bool is_value_of(std::string_view option, const std::string& value) {
  return option == "--model"
         || (!value.empty() && std::ranges::all_of(value, [](unsigned char c) {
              return std::isdigit(c) != 0;
            }));
}

} // namespace

std::string typed_option_error(const CLI::App& said, const std::string& option,
                               const std::string& value, const std::string& from) {
  const auto* const known = said.get_option_no_throw(option);
  if (known == nullptr || known->count() == 0)
    return {};
  const auto typed = known->as<std::string>();
  if (typed != value && is_value_of(option, value)
      && std::ranges::find(network_names, option) != std::end(network_names))
    return from + " records " + option + " " + value + ", and this command has "
           + option + " " + typed + ": leave " + option + " out";
  return {};
}

std::string set_saved_options(const saved_run& saved, const CLI::App& said,
                              CLI::App& to) {
  const auto says = [&](const char* name) {
    const auto* const option = said.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
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
    for (const auto& [name, value] : saved.options)
      if (auto error = typed_option_error(said, name, value, saved.from);
          !error.empty())
        return error;
  for (const auto& [name, value] : saved.options) {
    auto* const option = to.get_option_no_throw(name);
    if (option == nullptr || value.empty() || says(name.c_str()) || is_left_out(name)
        || std::ranges::find(recordable_options, name) == std::end(recordable_options))
      continue;
    try {
      option->add_result(value);
      option->run_callback();
    } catch (const CLI::ParseError&) {
      return saved.from + " records " + name + " " + value + ", which " + name
             + " does not allow: give another " + name;
    }
  }
  return {};
}

} // namespace troupe
