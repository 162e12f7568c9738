// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/checkpoint_manifest.hpp"

#include "kernels/checksum.hpp"
#include "models/input_file.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

using nlohmann::json;

constexpr int format = 3, format_with_counts = 2;
constexpr const char* format_key = "troupe_checkpoint";
constexpr std::int64_t most = std::numeric_limits<int>::max();
constexpr std::int64_t most_versions = 1 << 10;
constexpr std::int64_t most_bytes = std::int64_t{1} << 28;
constexpr int most_depth = 8;
constexpr std::int64_t largest = std::int64_t{1} << 50;

using range = parameter_cut::range;

json json_of(const range& r) {
  return {r.begin, r.end};
}

json json_of(const checkpoint_facts::tensor& tensor) {
  json result{{"name", tensor.name},
              {"array", name_of(tensor.array)},
              {"parameter", tensor.piece.part.name},
              {"shape", tensor.dims}};
  if (const auto& cut = tensor.piece.part.cut) {
    result["rows"] = json_of(cut->rows);
    for (const auto& columns : cut->columns)
      result["columns"].push_back(json_of(columns));
  }
  if (!tensor.piece.is_whole_part()) {
    result["first"] = tensor.piece.begin;
    result["values"] = tensor.piece.values();
  }
  return result;
}

json json_of(const data_identity& data) {
  return {
    {"kind", data.kind}, {"bytes", data.bytes}, {"xxh3", text_of_sum(data.checksum)}};
}

json json_of(const training_facts& training) {
  return {{"options", training.options},
          {"data", training.data ? json_of(*training.data) : json(nullptr)}};
}

/// Returns an integer of a manifest after a range check. \throws broken_checkpoint
std::int64_t number(const json& value, std::int64_t least, std::int64_t most_allowed) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value > most_allowed)
      || value < least || value > most_allowed)
    throw broken_checkpoint(
      "a number is " + (value.is_number() ? value.dump() : value.type_name()) + ", and "
      + std::to_string(least) + " to " + std::to_string(most_allowed) + " are allowed");
  return value;
}

range range_in(const json& value, std::int64_t end) {
  const auto first = number(value.at(0), 0, end);
  return {first, number(value.at(1), first, end)};
}

/// The number that follows a prefix, as in "parameters-1"; absent if `name` has another
/// form.
std::optional<int> number_behind(std::string_view word, std::string_view name) {
  int result = 0;
  const auto* const end = name.data() + name.size();
  if (!name.starts_with(word)
      || std::from_chars(name.data() + word.size(), end, result).ptr != end)
    return {};
  return result;
}

saved_array array_in(const std::string& name, const checkpoint_facts& facts) {
  saved_array result;
  const auto state = std::ranges::find(facts.state, name);
  if (state != facts.state.end())
    result = {saved_array::kind::state, static_cast<int>(state - facts.state.begin()),
              name};
  else if (const auto age = number_behind("parameters-", name))
    result.number = *age;
  if (name_of(result) != name || result.number < 0
      || (result.type == saved_array::kind::parameters && result.number > facts.older))
    throw broken_checkpoint("it has no array '" + name + "'");
  return result;
}

/// The names of the optimizer's state arrays. \throws broken_checkpoint
std::vector<std::string> state_in(const json& document) {
  std::vector<std::string> result;
  if (document.at(format_key) == format_with_counts) {
    const auto arrays = number(document.at("moments"), 0, 2);
    for (std::int64_t i = 0; i < arrays; ++i)
      result.push_back("moment-" + std::to_string(i));
    return result;
  }
  const auto& names = document.at("state");
  if (!names.is_array() || names.size() > 64)
    throw broken_checkpoint("its state is no list of at most 64 names");
  for (const auto& name : names) {
    const auto& text = name.get_ref<const std::string&>();
    const bool is_valid =
      !text.empty() && text.size() <= 64 && !text.starts_with("parameters")
      && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_")
           == std::string::npos;
    if (!is_valid || std::ranges::find(result, text) != result.end())
      throw broken_checkpoint("it has a state array '" + text
                              + "': distinct names of small letters, digits, - and _ "
                                "are allowed");
    result.push_back(text);
  }
  return result;
}

checkpoint_facts::tensor tensor_in(const json& object, const checkpoint_facts& facts) {
  checkpoint_facts::tensor result{.name = object.at("name"),
                                  .array = array_in(object.at("array"), facts),
                                  .dims = {},
                                  .piece = {}};
  auto& part = result.piece.part;
  part.name = object.at("parameter");
  if (result.name != tensor_name(result.array, part.name))
    throw broken_checkpoint("'" + result.name + "' cannot be of "
                            + name_of(result.array) + " of '" + part.name + "'");
  std::int64_t values = 1;
  for (const auto& dim : object.at("shape")) {
    result.dims.push_back(number(dim, 1, largest));
    if (result.dims.back() > largest / values)
      throw broken_checkpoint("'" + part.name + "' is too large");
    values *= result.dims.back();
  }
  part.dims = result.dims;
  if (object.contains("rows") && !part.dims.empty()) {
    const auto columns = part.dims.back();
    part.cut = {columns, range_in(object.at("rows"), values / columns), {}, 0};
    std::int64_t across = 0;
    for (const auto& columns_range : object.at("columns")) {
      part.cut->columns.push_back(range_in(columns_range, columns));
      across += part.cut->columns.back().end - part.cut->columns.back().begin;
    }
    if (across > columns)
      throw broken_checkpoint("columns of parameter '" + part.name + "' occur twice");
    part.dims = {part.cut->rows.end - part.cut->rows.begin, across};
  }
  result.piece.begin =
    object.contains("first") ? number(object.at("first"), 0, part.values()) : 0;
  result.piece.end =
    object.contains("values")
      ? result.piece.begin
          + number(object.at("values"), 0, part.values() - result.piece.begin)
      : part.values();
  return result;
}

/// Accepts plain file names only, as files of a checkpoint are in the checkpoint's own
/// folder.
std::string file_name_in(const json& value) {
  std::string name = value;
  const auto may_be_there = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  constexpr std::size_t longest = 200;
  if (name.empty() || name.size() > longest || name.front() == '.'
      || !std::ranges::all_of(name, may_be_there))
    throw broken_checkpoint("it has a file name that no checkpoint uses");
  return name;
}

std::uint64_t sum_in(const json& value) {
  const std::string text = value;
  std::uint64_t result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result, 16);
  if (text_of_sum(result) != text)
    throw broken_checkpoint("'" + text + "' is not a checksum");
  return result;
}

/// Returns a text without control characters, as error messages quote the text. \throws
/// broken_checkpoint
std::string line_in(const json& value) {
  std::string text = value;
  if (std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 127; }))
    throw broken_checkpoint("a text in it has a control character");
  return text;
}

data_identity identity_in(const json& object) {
  return {line_in(object.at("kind")), number(object.at("bytes"), 0, largest),
          sum_in(object.at("xxh3"))};
}

training_facts training_in(const json& object) {
  training_facts result;
  for (const auto& [option, value] : object.at("options").items())
    result.options[line_in(option)] = line_in(value);
  if (const auto& data = object.at("data"); !data.is_null())
    result.data = identity_in(data);
  return result;
}

/// Parses JSON from an untrusted source.
json parsed(const std::string& text) {
  try {
    return shallow_json(text, most_depth);
  } catch (const std::invalid_argument&) {
    throw broken_checkpoint("it is nested too deep");
  }
}

/// The checksum of the JSON's contents, independent of white space.
std::uint64_t sum_of(const json& contents) {
  const auto text = json_text(contents);
  running_checksum sum;
  sum.add(std::as_bytes(std::span{text}));
  return sum.value();
}

checkpoint_facts facts_in(json document) {
  if (!document.is_object() || !document.contains(format_key))
    throw undecided_checkpoint("it is JSON of another program");
  if (document.at(format_key) != format
      && document.at(format_key) != format_with_counts)
    throw undecided_checkpoint("it was written by another version of troupe");
  const auto sum = sum_in(document.at("xxh3"));
  document.erase("xxh3");
  if (sum != sum_of(document))
    throw broken_checkpoint("it has changed since it was written, as its checksum is "
                            + text_of_sum(sum_of(document)) + ", not "
                            + text_of_sum(sum));
  checkpoint_facts result{
    .batches = static_cast<int>(number(document.at("batches"), 1, most)),
    .samples = number(document.at("samples"), 1, largest),
    .older = static_cast<int>(number(document.at("older_versions"), 0, most_versions)),
    .state = state_in(document),
    .updates = {},
    .files = {}};
  for (const auto& updates : document.at("updates"))
    result.updates.push_back(number(updates, 0, most));
  if (document.contains("training"))
    result.training = training_in(document.at("training"));
  std::set<std::string> names;
  for (const auto& f : document.at("files")) {
    auto& file = result.files.emplace_back(
      checkpoint_facts::file{file_name_in(f.at("name")),
                             number(f.at("bytes"), 0, largest),
                             sum_in(f.at("xxh3")),
                             {}});
    if (!names.insert(file.name).second)
      throw broken_checkpoint("it names " + file.name + " twice");
    for (const auto& tensor : f.at("tensors"))
      file.tensors.push_back(tensor_in(tensor, result));
  }
  int oldest = 0;
  for (const auto& file : result.files)
    for (const auto& t : file.tensors)
      if (t.array.type == saved_array::kind::parameters)
        oldest = std::max(oldest, t.array.number);
  if (oldest != result.older)
    throw broken_checkpoint("it has no parameters of age "
                            + std::to_string(result.older));
  return result;
}

} // namespace

std::string manifest_text(const data_identity& data) {
  return json_text(json_of(data));
}

data_identity data_identity_in(const std::string& manifest_text) {
  try {
    return identity_in(parsed(manifest_text));
  } catch (const json::exception&) {
    throw broken_checkpoint("it is not JSON in the form that troupe writes");
  }
}

std::string tensor_name(const saved_array& array, const std::string& parameter) {
  return array == saved_array{} ? parameter : name_of(array) + "/" + parameter;
}

std::string manifest_of(const checkpoint_facts& facts) {
  auto files = json::array();
  for (const auto& file : facts.files) {
    auto tensors = json::array();
    for (const auto& tensor : file.tensors)
      tensors.push_back(json_of(tensor));
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"xxh3", text_of_sum(file.sum)},
                     {"tensors", tensors}});
  }
  json document{{format_key, format},
                {"batches", facts.batches},
                {"samples", facts.samples},
                {"older_versions", facts.older},
                {"state", facts.state},
                {"updates", facts.updates},
                {"files", files}};
  if (facts.training)
    document["training"] = json_of(*facts.training);
  document["xxh3"] = text_of_sum(sum_of(document));
  return json_text(document, 1) + '\n';
}

checkpoint_facts read_manifest(const std::filesystem::path& file) {
  const auto opened = input_file::open(file, "the manifest");
  if (!opened)
    throw undecided_checkpoint(opened.error());
  if (opened->size() > most_bytes)
    throw undecided_checkpoint(file.string() + " is larger than any manifest");
  std::string text;
  try {
    text = opened->content();
  } catch (const std::runtime_error& error) {
    throw undecided_checkpoint(error.what());
  }
  const auto what = [&](const broken_checkpoint& error) {
    return file.string() + " is not a manifest of a checkpoint: " + error.what();
  };
  try {
    return facts_in(text);
  } catch (const undecided_checkpoint& error) {
    throw undecided_checkpoint(what(error));
  } catch (const broken_checkpoint& error) {
    throw broken_checkpoint(what(error));
  }
}

checkpoint_facts facts_in(const std::string& manifest) {
  try {
    return facts_in(parsed(manifest));
  } catch (const json::exception&) {
    throw broken_checkpoint("it is not JSON in the form that troupe writes");
  }
}

} // namespace troupe
