// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/opened_data.hpp"

#include "experiments/options/parsing.hpp"
#include "models/data/data_name.hpp"
#include "models/data/mnist.hpp"
#include "models/data/open_data.hpp"
#include "models/file_format.hpp"

#include <algorithm>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// The sentence about a file or a folder that is named without a kind of data. It has
/// the kind to add, or the format of a file that is no data.
std::string error_of_place(const std::string& option, const std::string& path) {
  const auto name = "'" + path + "'";
  const auto advice = [&](const std::string& kinds) {
    return name + " names no kind of data: say " + option + " " + kinds;
  };
  std::error_code unknown;
  if (fs::is_directory(path, unknown))
    return advice((has_mnist(path) ? "mnist:" : "text:") + path);
  const std::string description = "the file";
  const auto file = input_file::open(path, description);
  if (!file) {
    const auto begin = "cannot read " + description + " " + path + ": ";
    return name + " names no kind of data, and cannot be read ("
           + file.error().substr(std::min(begin.size(), file.error().size()))
           + "): say " + option + " text:PATH, tokens:PATH or mnist:FOLDER";
  }
  const auto format = format_of(*file);
  if (!format || format->kind == format_kind::tokens)
    return advice("tokens:" + path);
  if (format->kind == format_kind::text)
    return advice("text:" + path);
  const auto mend = advice_on(*format);
  return name + " is " + format->name + (mend.empty() ? ", not data" : ": " + mend);
}

/// The sentence about a name of data without a known kind; empty if the kind is known.
/// \param option that names the data
std::string data_kind_error(const std::string& option, const std::string& text,
                            const std::string& kind) {
  const auto& kinds = data_kinds();
  const bool is_known = std::ranges::find(kinds, kind) != kinds.end();
  std::error_code unknown;
  if (!is_known && fs::exists(text, unknown))
    return error_of_place(option, text);
  if (!is_known)
    return "there is no data set '" + text + "'" + did_you_mean(kind, kinds) + "; "
           + option + " takes " + known_data;
  if (kind != "synthetic"
      && text.find_first_not_of(' ', kind.size() + 1) == std::string::npos)
    return option + " " + text + " names no " + (kind == "mnist" ? "folder" : "file")
           + ": say " + kind + ":PATH";
  return {};
}

/// The end of a sentence about data that cannot be opened: the source of the data's
/// name.
std::string origin_of(const data_options& o) {
  if (!o.origin)
    return {};
  std::string notes;
  constexpr const char* replacement = "\xef\xbf\xbd"; // U+FFFD, by models/utf8
  if (o.text.find(replacement) != std::string::npos)
    notes = ", with U+FFFD in place of bytes that are not UTF-8";
  else if (!o.path.empty() && std::filesystem::path{o.path}.is_relative())
    notes = ", relative to the folder in which the training ran";
  const bool evaluates = !o.evaluation.empty();
  return "; " + o.origin->path + " says --data " + o.text
         + (evaluates ? " --evaluate-data " + o.evaluation : "") + notes
         + ": name the data with --data" + (evaluates ? " and --evaluate-data" : "");
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
opened_data(const options& o, const std::filesystem::path& within) {
  const auto& [text, evaluation] = std::pair{o.data.text, o.data.evaluation};
  if (within.empty()) {
    if (auto error = data_kind_error("--data", text, o.data.name); !error.empty())
      return problem{error + origin_of(o.data)};
    if (auto error = data_kind_error("--evaluate-data", evaluation,
                                     parse_data_name(evaluation).kind);
        !evaluation.empty() && !error.empty())
      return problem{error};
  }
  const bool only_evaluates =
    !o.inference.weights.empty() && !evaluation.empty() && !o.data.origin;
  auto data =
    only_evaluates
      ? open_evaluation_data(evaluation, o.model, o.data.seed_of_data(), within)
    : evaluation.empty()
      ? open_data(text, o.model, o.data.seed_of_data(), within)
      : open_data_sets(text, evaluation, o.model, o.data.seed_of_data(), within);
  if (!data)
    return problem{data.error() + origin_of(o.data)};
  const auto identity = (*data)->identity();
  if (const auto& origin = o.data.origin; origin && origin->identity && identity
                                          && identity->bytes > 0
                                          && *origin->identity != *identity)
    return problem{origin->path + " was trained on '" + to_string(*origin->identity)
                   + "', but --data " + text
                   + (evaluation.empty() ? "" : " --evaluate-data " + evaluation)
                   + " is now '" + to_string(*identity)
                   + "': restore that data, or name other data with --data"};
  return data;
}

} // namespace troupe
