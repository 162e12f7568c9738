#include "experiments/options/saved_options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace troupe {

namespace {

/// A file may say these and no others: whoever wrote it does not choose where results
/// go.
constexpr std::string_view sayable[] = {
  "--model", "--layers", "--d-model",  "--heads",         "--seq",
  "--vocab", "--tied",   "--experts",  "--shared-expert", "--expert-top-k",
  "--data",  "--seed",   "--precision"};

} // namespace

file_metadata options_to_save(const options& o) {
  const auto& m = o.model;
  file_metadata result{{"--model", m.model},
                       {"--data", o.data.text},
                       {"--seed", std::to_string(o.data.seed)}};
  const auto add = [&](const char* option, auto value) {
    result[option] = std::to_string(value);
  };
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

std::string take_saved_options(CLI::App& app, const std::string& weights) {
  std::error_code unknown;
  if (weights.empty() || std::filesystem::is_directory(weights, unknown))
    return {};
  const auto file = safetensors_file::open(weights);
  if (!file)
    return file.error();
  const bool reads_data = app.get_option_no_throw("--data") != nullptr; // of that seed
  for (const auto& [name, value] : file->metadata()) {
    auto* const option = app.get_option_no_throw(name);
    if (option == nullptr || option->count() > 0 || (name == "--seed" && !reads_data)
        || std::ranges::find(sayable, name) == std::end(sayable))
      continue;
    try {
      option->add_result(value);
      option->run_callback();
    } catch (const CLI::ParseError&) {
      return weights + " says " + name + " " + value
             + ", which is no value of that option: say " + name + " yourself";
    }
  }
  return {};
}

} // namespace troupe
