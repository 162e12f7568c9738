// SPDX-License-Identifier: BSD-3-Clause
#include "models/safetensors_index.hpp"

#include "models/file_format.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using problem = tl::unexpected<std::string>;

constexpr const char *tensors_suffix = ".safetensors",
                     *index_suffix = ".safetensors.index.json";

/// Whether a name is that of a file of tensors in the same folder.
bool is_plain_name(const std::string& name) {
  return name.find('/') == std::string::npos && name.ends_with(tensors_suffix)
         && !name.starts_with('.');
}

/// The paths of the files in a folder, in order of name.
tl::expected<std::vector<fs::path>, std::string> files_in(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code failed, unknown;
  fs::directory_iterator entry{folder, failed};
  for (const fs::directory_iterator end; !failed && entry != end;
       entry.increment(failed))
    if (!entry->is_directory(unknown))
      result.push_back(entry->path());
  if (failed)
    return problem{"cannot read the folder " + folder.string() + ": "
                   + failed.message()};
  std::ranges::sort(result);
  return result;
}

std::string joined_names(const std::vector<fs::path>& files) {
  constexpr std::size_t most_named = 3;
  std::string result;
  for (std::size_t i = 0; i < std::min(files.size(), most_named); ++i)
    result += (i == 0 ? "" : ", ") + files[i].filename().string();
  return result + (files.size() > most_named ? ", .." : "");
}

/// The end of a sentence about the first file of weights in another format; empty
/// without such a file.
std::string other_weights(const std::vector<fs::path>& files) {
  for (const auto& path : files) {
    const auto file = input_file::open(path, "the file");
    const auto format = file ? format_of(*file) : std::nullopt;
    if (format && format->kind == format_kind::binary)
      return "; " + path.filename().string() + " is " + format->name
             + ", which the tool that wrote it can convert to safetensors";
  }
  return {};
}

} // namespace

bool is_index(const fs::path& path, const input_file& file) {
  if (path.filename().string().ends_with(index_suffix))
    return true;
  const auto format = format_of(file);
  return format && format->name == "a JSON file";
}

tl::expected<weight_map, std::string> read_index(const input_file& index) {
  constexpr std::int64_t largest = 100'000'000;
  if (index.size() > largest)
    return problem{"is larger than 100 MB, and no index of a model's files"};
  const auto content = json::parse(index.content(), nullptr, false);
  if (!content.is_object() || !content.contains("weight_map")
      || !content["weight_map"].is_object())
    return problem{"is a JSON file without a weight_map, and no index of several "
                   "files: name a file of weights"};
  weight_map result;
  for (const auto& [tensor, file] : content["weight_map"].items()) {
    if (std::ranges::any_of(tensor, [](unsigned char c) { return c < ' '; }))
      return problem{"has a tensor whose name holds a control character"};
    if (!file.is_string() || !is_plain_name(file.get<std::string>()))
      return problem{
        "names " + json_text(file) + " as the file of tensor '" + tensor
        + "', but only .safetensors files of the index's folder are allowed"};
    result.emplace(tensor, file.get<std::string>());
  }
  if (result.empty())
    return problem{"names no tensor"};
  return result;
}

tl::expected<fs::path, std::string> weights_at(const fs::path& path) {
  std::error_code unknown;
  if (!fs::is_directory(path, unknown))
    return path;
  for (const auto* const ending : {tensors_suffix, index_suffix})
    if (auto file = path / (std::string{"model"} + ending); fs::exists(file, unknown))
      return file;
  const auto files = files_in(path);
  if (!files)
    return problem{files.error()};
  for (const auto* const ending : {index_suffix, tensors_suffix}) {
    std::vector<fs::path> matches;
    std::ranges::copy_if(
      *files, std::back_inserter(matches),
      [&](const fs::path& file) { return file.filename().string().ends_with(ending); });
    if (matches.size() == 1)
      return matches.front();
    if (matches.size() > 1)
      return problem{path.string() + " has several files of weights, "
                     + joined_names(matches) + ": name a single file"};
  }
  return problem{path.string() + " has no file that ends with .safetensors"
                 + other_weights(*files)};
}

} // namespace troupe
