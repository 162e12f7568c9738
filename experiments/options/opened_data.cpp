// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/opened_data.hpp"

#include "experiments/options/parsing.hpp"
#include "experiments/options/suggestion.hpp"
#include "models/data/data_name.hpp"
#include "models/data/open_data.hpp"

#include <algorithm>
#include <array>
#include <fstream>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// The kind of data that a file or a folder seems to hold.
std::string kind_of(const fs::path& path) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    for (const char* name : {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"})
      if (fs::exists(path / name, unknown)
          || fs::exists(path / (std::string{name} + ".gz"), unknown))
        return "mnist";
    return "text";
  }
  std::array<char, 512> first{};
  std::ifstream file{path, std::ios::binary};
  file.read(first.data(), first.size());
  const auto read = first.begin() + file.gcount();
  return std::find(first.begin(), read, '\0') == read ? "text" : "tokens";
}

/// The sentence about data that name no kind of data; empty if they name one.
/// \param option that names them
std::string refusal_of_kind(const std::string& option, const std::string& text,
                            const std::string& kind) {
  const std::vector<std::string> kinds{"synthetic", "text", "tokens", "mnist"};
  const bool is_known = std::ranges::find(kinds, kind) != kinds.end();
  std::error_code unknown;
  if (!is_known && fs::exists(text, unknown))
    return "there is no data set '" + text + "', but a "
           + (fs::is_directory(text, unknown) ? "folder" : "file")
           + " of that name: say " + option + " " + kind_of(text) + ":" + text;
  if (!is_known)
    return "there is no data set '" + text + "'" + did_you_mean(kind, kinds) + "; "
           + option + " takes synthetic, text:PATH, tokens:FILE or mnist:FOLDER";
  if (kind != "synthetic"
      && text.find_first_not_of(' ', kind.size() + 1) == std::string::npos)
    return option + " " + text + " names no " + (kind == "mnist" ? "folder" : "file")
           + ": say " + kind + ":PATH";
  return {};
}

/// The end of a sentence about data that cannot be opened: where its name comes from.
std::string origin_of(const data_options& o) {
  if (!o.origin)
    return {};
  std::string notes;
  constexpr const char* replacement = "\xef\xbf\xbd"; // U+FFFD, by models/utf8
  if (o.text.find(replacement) != std::string::npos)
    notes = ", with U+FFFD in place of bytes that are not UTF-8";
  else if (!o.path.empty() && std::filesystem::path{o.path}.is_relative())
    notes = ", from the folder in which the training ran";
  const bool evaluates = !o.evaluation.empty();
  return "; " + o.origin->place + " says --data " + o.text
         + (evaluates ? " --evaluate-data " + o.evaluation : "") + notes
         + ": name the data with --data" + (evaluates ? " and --evaluate-data" : "");
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
opened_data(const options& o, const std::filesystem::path& within) {
  const auto& [text, evaluation] = std::pair{o.data.text, o.data.evaluation};
  if (within.empty()) {
    if (auto wrong = refusal_of_kind("--data", text, o.data.name); !wrong.empty())
      return problem{wrong + origin_of(o.data)};
    if (auto wrong = refusal_of_kind("--evaluate-data", evaluation,
                                     parse_data_name(evaluation).kind);
        !evaluation.empty() && !wrong.empty())
      return problem{wrong};
  }
  auto data = evaluation.empty()
                ? open_data(text, o.model, o.data.seed, within)
                : open_data_sets(text, evaluation, o.model, o.data.seed, within);
  if (!data)
    return problem{data.error() + origin_of(o.data)};
  const auto identity = (*data)->identity();
  if (const auto& origin = o.data.origin; origin && origin->identity && identity
                                          && identity->bytes > 0
                                          && *origin->identity != *identity)
    return problem{
      "--data " + text + (evaluation.empty() ? "" : " --evaluate-data " + evaluation)
      + " is not the data of the training: that was '" + to_string(*origin->identity)
      + "', and this is '" + to_string(*identity)
      + "': restore that data, or name other data with --data"};
  return data;
}

} // namespace troupe
