// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/checkpoint_manifest.hpp"

#include "kernels/checksum.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

using nlohmann::json;

constexpr int format = 2;
constexpr std::int64_t most = std::numeric_limits<int>::max();
constexpr std::int64_t most_versions = 1 << 10;
constexpr std::uintmax_t most_bytes = std::uintmax_t{1} << 28;
constexpr int most_depth = 8;
constexpr std::int64_t largest = std::int64_t{1} << 50;

using range = parameter_cut::range;

json json_of(const range& r) {
  return {r.begin, r.end};
}

json json_of(const checkpoint_facts::tensor& one) {
  json result{{"name", one.name},
              {"array", name_of(one.of)},
              {"parameter", one.piece.of.name},
              {"shape", one.dims}};
  if (const auto& cut = one.piece.of.cut) {
    result["rows"] = json_of(cut->rows);
    for (const auto& columns : cut->columns)
      result["columns"].push_back(json_of(columns));
  }
  if (!one.piece.is_whole_part()) {
    result["first"] = one.piece.begin;
    result["values"] = one.piece.values();
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
std::int64_t number(const json& of, std::int64_t least, std::int64_t most_allowed) {
  if (!of.is_number_integer() || (of.is_number_unsigned() && of > most_allowed)
      || of < least || of > most_allowed)
    throw broken_checkpoint(
      "a number is " + (of.is_number() ? of.dump() : of.type_name()) + ", and "
      + std::to_string(least) + " to " + std::to_string(most_allowed) + " are allowed");
  return of;
}

range range_in(const json& of, std::int64_t end) {
  const auto first = number(of.at(0), 0, end);
  return {first, number(of.at(1), first, end)};
}

/// The number that follows a prefix, as in "moment-0"; absent if `name` has another
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
  using kind = saved_array::kind;
  saved_array result;
  if (const auto age = number_behind("parameters-", name))
    result.number = *age;
  else if (const auto moment = number_behind("moment-", name))
    result = {kind::moment, *moment};
  const bool is_moment = result.what == kind::moment;
  if (name_of(result) != name || result.number < 0
      || (is_moment ? result.number >= facts.moments : result.number > facts.older))
    throw broken_checkpoint("it has no array '" + name + "'");
  return result;
}

checkpoint_facts::tensor tensor_in(const json& of, const checkpoint_facts& facts) {
  checkpoint_facts::tensor result{.name = of.at("name"),
                                  .of = array_in(of.at("array"), facts),
                                  .dims = {},
                                  .piece = {}};
  auto& part = result.piece.of;
  part.name = of.at("parameter");
  if (result.name != tensor_name(result.of, part.name))
    throw broken_checkpoint("'" + result.name + "' cannot be of " + name_of(result.of)
                            + " of '" + part.name + "'");
  std::int64_t values = 1;
  for (const auto& dim : of.at("shape")) {
    result.dims.push_back(number(dim, 1, largest));
    if (result.dims.back() > largest / values)
      throw broken_checkpoint("'" + part.name + "' is too large");
    values *= result.dims.back();
  }
  part.dims = result.dims;
  if (of.contains("rows") && !part.dims.empty()) {
    const auto columns = part.dims.back();
    part.cut = {columns, range_in(of.at("rows"), values / columns), {}, 0};
    std::int64_t across = 0;
    for (const auto& one : of.at("columns")) {
      part.cut->columns.push_back(range_in(one, columns));
      across += part.cut->columns.back().end - part.cut->columns.back().begin;
    }
    if (across > columns)
      throw broken_checkpoint("columns of '" + part.name + "' are there twice");
    part.dims = {part.cut->rows.end - part.cut->rows.begin, across};
  }
  result.piece.begin =
    of.contains("first") ? number(of.at("first"), 0, part.values()) : 0;
  result.piece.end =
    of.contains("values")
      ? result.piece.begin
          + number(of.at("values"), 0, part.values() - result.piece.begin)
      : part.values();
  return result;
}

/// Accepts plain file names only, as files of a checkpoint are in the checkpoint's own
/// folder.
std::string file_name_in(const json& of) {
  std::string name = of;
  const auto may_be_there = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  constexpr std::size_t longest = 200;
  if (name.empty() || name.size() > longest || name.front() == '.'
      || !std::ranges::all_of(name, may_be_there))
    throw broken_checkpoint("it names a file that is not a checkpoint's");
  return name;
}

std::uint64_t sum_in(const json& of) {
  const std::string text = of;
  std::uint64_t result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result, 16);
  if (text_of_sum(result) != text)
    throw broken_checkpoint("'" + text + "' is not a checksum");
  return result;
}

/// Returns a text without control characters, as error messages quote the text. \throws
/// broken_checkpoint
std::string line_in(const json& of) {
  std::string text = of;
  if (std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 127; }))
    throw broken_checkpoint("one of its texts has a control character");
  return text;
}

data_identity identity_in(const json& of) {
  return {line_in(of.at("kind")), number(of.at("bytes"), 0, largest),
          sum_in(of.at("xxh3"))};
}

training_facts training_in(const json& of) {
  training_facts result;
  for (const auto& [option, value] : of.at("options").items())
    result.options[line_in(option)] = line_in(value);
  if (const auto& data = of.at("data"); !data.is_null())
    result.data = identity_in(data);
  return result;
}

/// Parses JSON from an untrusted source.
json parsed(const std::string& text) {
  const auto look = [](int depth, json::parse_event_t, const json&) {
    if (depth > most_depth) // recursive writers and destructors would recurse as deep
      throw broken_checkpoint("it is nested too deep");
    return true;
  };
  return json::parse(text, look);
}

/// The checksum of the JSON's contents, independent of white space.
std::uint64_t sum_of(const json& all) {
  const auto text = json_text(all);
  running_checksum sum;
  sum.add(std::as_bytes(std::span{text}));
  return sum.value();
}

checkpoint_facts facts_in(json all) {
  if (all.at("troupe_checkpoint") != format)
    throw broken_checkpoint("it is of another version of troupe");
  const auto sum = sum_in(all.at("xxh3"));
  all.erase("xxh3");
  if (sum != sum_of(all))
    throw broken_checkpoint("it has changed since it was written: its checksum is "
                            + text_of_sum(sum_of(all)) + ", not " + text_of_sum(sum));
  checkpoint_facts result{
    .batches = static_cast<int>(number(all.at("batches"), 1, most)),
    .samples = number(all.at("samples"), 1, largest),
    .older = static_cast<int>(number(all.at("older_versions"), 0, most_versions)),
    .moments = static_cast<int>(number(all.at("moments"), 0, 2)),
    .updates = {},
    .files = {}};
  for (const auto& updates : all.at("updates"))
    result.updates.push_back(number(updates, 0, most));
  if (all.contains("training"))
    result.training = training_in(all.at("training"));
  std::set<std::string> names;
  for (const auto& f : all.at("files")) {
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
      if (t.of.what == saved_array::kind::parameters)
        oldest = std::max(oldest, t.of.number);
  if (oldest != result.older)
    throw broken_checkpoint("it has no version of age " + std::to_string(result.older));
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
    throw broken_checkpoint("it is not what this program writes");
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
  json all{{"troupe_checkpoint", format},
           {"batches", facts.batches},
           {"samples", facts.samples},
           {"older_versions", facts.older},
           {"moments", facts.moments},
           {"updates", facts.updates},
           {"files", files}};
  if (facts.training)
    all["training"] = json_of(*facts.training);
  all["xxh3"] = text_of_sum(sum_of(all));
  return json_text(all, 1) + '\n';
}

checkpoint_facts read_manifest(const std::filesystem::path& file) {
  std::error_code failed;
  if (std::filesystem::file_size(file, failed) > most_bytes)
    throw broken_checkpoint(file.string() + " is larger than any manifest");
  std::ifstream in{file};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  try {
    return facts_in(text);
  } catch (const broken_checkpoint& wrong) {
    throw broken_checkpoint(file.string()
                            + " is not a manifest of a checkpoint: " + wrong.what());
  }
}

checkpoint_facts facts_in(const std::string& manifest) {
  try {
    return facts_in(parsed(manifest));
  } catch (const json::exception&) {
    throw broken_checkpoint("it is not what this program writes");
  }
}

} // namespace troupe
