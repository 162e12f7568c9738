// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/open_data.hpp"

#include "models/data/data_files.hpp"
#include "models/data/data_name.hpp"
#include "models/data/evaluation_data.hpp"
#include "models/data/mnist.hpp"
#include "models/data/synthetic.hpp"
#include "models/data/text.hpp"
#include "models/data/tokens.hpp"

#include <algorithm>
#include <set>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// The error about a key and a value behind data of this kind; empty if both are
/// allowed.
std::string value_error(const std::string& kind, const std::string& key,
                        const std::string& value) {
  const bool is_text = kind == "text" || kind == "tokens";
  const auto text = key + "=" + value;
  if (key == "order" && is_text)
    return value == "random" || value == "sequential"
             ? ""
             : text + ": write random or sequential";
  if (key == "width" && kind == "tokens")
    return value == "16" || value == "32" ? "" : text + ": write 16 or 32";
  if (key == "split" && kind == "mnist")
    return value == "t10k" ? "" : text + ": write t10k, or leave split= out";
  return key + "= is no key of " + kind
         + ": order= is a key of text and tokens, width= of tokens, split= of "
           "mnist";
}

/// \param whole whether a text in random order is for training alone, or for
/// evaluations alone
tl::expected<std::shared_ptr<const data_set>, std::string>
open_part(const std::string& text, const model_options& model, std::uint64_t seed,
          const std::filesystem::path& within, bool whole) {
  const bool wants_text = model.model == "gpt" || model.model == "moe";
  auto [kind, path, values, repeated_key] = parse_data_name(text);
  if (text == "synthetic" || text == "synthetic:")
    return wants_text ? synthetic_text(model.length, model.words, seed)
                      : synthetic_images(seed);
  const bool is_text = kind == "text" || kind == "tokens";
  if ((!is_text && kind != "mnist") || path.empty())
    return tl::unexpected{"there is no data '" + text + "'; say " + known_data};
  if (wants_text != is_text)
    return tl::unexpected{"model " + model.model + " trains on "
                          + (wants_text ? "text or tokens" : "images") + ", not on "
                          + kind};
  if (!repeated_key.empty())
    return tl::unexpected{text + " has " + repeated_key
                          + "= twice: give each key once after the path"};
  for (const auto& [key, value] : values)
    if (auto error = value_error(kind, key, value); !error.empty())
      return tl::unexpected{std::move(error)};
  if (kind == "mnist")
    return mnist_data(path, seed, values.contains("split"), within);
  const auto order = values["order"] == "sequential" ? text_order::sequential
                     : whole                         ? text_order::whole
                                                     : text_order::random;
  if (kind == "text")
    return text_data(path, order, model.length, model.words, seed, within);
  const std::map<std::string, int> widths{{"16", 2}, {"32", 4}};
  const auto width = widths.find(values["width"]);
  return token_data(path, order, model.length, model.words, seed,
                    width != widths.end() ? width->second : 0, within);
}

/// The files of a text or of tokens, with all links resolved.
std::set<fs::path> files_of(const data_name& data, const fs::path& within) {
  std::set<fs::path> result;
  if (const auto files = data_files_at(data.path, within))
    for (const auto& file : files->read) {
      std::error_code unknown;
      result.insert(fs::weakly_canonical(file, unknown));
    }
  return result;
}

/// Whether evaluation and training have samples in common. Common samples are a file
/// that both name, or all t10k images where training has nine tenths of the same
/// images.
bool shares_samples(const std::string& training, const std::string& evaluation,
                    const fs::path& within) {
  const auto trained = parse_data_name(training),
             evaluated = parse_data_name(evaluation);
  if (trained.kind != evaluated.kind || trained.path.empty() || evaluated.path.empty())
    return false;
  if (trained.kind == "mnist") {
    std::error_code unknown;
    return trained.values.contains("split") && !evaluated.values.contains("split")
           && fs::equivalent(trained.path, evaluated.path, unknown);
  }
  const auto files = files_of(trained, within);
  return std::ranges::any_of(files_of(evaluated, within), [&](const fs::path& file) {
    return files.contains(file);
  });
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
open_data(const std::string& text, const model_options& model, std::uint64_t seed,
          const std::filesystem::path& within) {
  return open_part(text, model, seed, within, false);
}

tl::expected<std::shared_ptr<const data_set>, std::string>
open_evaluation_data(const std::string& text, const model_options& model,
                     std::uint64_t seed, const std::filesystem::path& within) {
  const auto refuse = [](const std::string& why) {
    return tl::unexpected{"--evaluate-data: " + why};
  };
  if (parse_data_name(text).values.contains("order"))
    return refuse("order= applies only to training data: leave order= out of " + text);
  auto data = open_part(text, model, seed, within, true);
  if (!data)
    return refuse(data.error());
  if ((*data)->evaluation_size() == 0)
    return refuse(text + " holds no sample to evaluate on: name more data");
  return data;
}

tl::expected<std::shared_ptr<const data_set>, std::string>
open_data_sets(const std::string& training, const std::string& evaluation,
               const model_options& model, std::uint64_t seed,
               const std::filesystem::path& within) {
  auto trained = open_part(training, model, seed, within, true);
  if (!trained)
    return trained;
  auto evaluated = open_evaluation_data(evaluation, model, seed, within);
  if (!evaluated)
    return evaluated;
  return with_evaluation_data(std::move(*trained), std::move(*evaluated),
                              shares_samples(training, evaluation, within));
}

} // namespace troupe
