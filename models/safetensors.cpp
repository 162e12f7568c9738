// SPDX-License-Identifier: BSD-3-Clause
#include "models/safetensors.hpp"

#include "kernels/bf16.hpp"
#include "models/file_format.hpp"
#include "models/float_types.hpp"
#include "models/safetensors_index.hpp"
#include "models/utf8.hpp"
#include "models/whole_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

namespace troupe {

static_assert(std::endian::native == std::endian::little,
              "safetensors is little-endian");

namespace {

using nlohmann::json;

constexpr std::uint64_t largest_header = 100'000'000; // the reference program's limit

/// A sentence that follows the path.
struct malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Parses a header. Refuses names that come twice, which JSON would swallow, and names
/// that are not one line of text. \throws malformed
json parse(const std::string& text) {
  std::set<std::string> names;
  std::string twice;
  const auto note_names = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1
        && !names.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  auto header = json::parse(text, note_names, false);
  if (header.is_discarded() || !header.is_object())
    throw malformed("its header is not a JSON object");
  for (const auto& name : names)
    if (std::ranges::any_of(name, [](unsigned char c) { return c < ' '; }))
      throw malformed("a tensor's name holds a control character");
  if (!twice.empty())
    throw malformed("tensor '" + twice + "' occurs twice");
  return header;
}

/// The tensor of a header's entry. \param data offset of the tensors' bytes in the file
/// \throws malformed
stored_tensor tensor_of(const std::string& name, const json& entry, std::int64_t data,
                        std::int64_t data_size) {
  const auto error = [&](const std::string& detail) {
    return malformed("tensor '" + name + "' " + detail);
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string()
      || !entry.contains("shape") || !entry["shape"].is_array()
      || !entry.contains("data_offsets") || !entry["data_offsets"].is_array()
      || entry["data_offsets"].size() != 2)
    throw error("lacks a dtype, a shape or two data_offsets");
  stored_tensor result{name, entry["dtype"], {}, 0, 0};
  std::int64_t bits = bits_of_type(result.type);
  if (bits == 0)
    throw error("has the unknown type " + result.type);
  for (const auto& dim : entry["shape"]) {
    if (!dim.is_number_unsigned())
      throw error("has a shape that is not of whole numbers");
    const auto size = dim.get<std::uint64_t>();
    if (__builtin_mul_overflow(bits, size, &bits))
      throw error("is larger than any memory");
    result.dims.push_back(static_cast<std::int64_t>(size));
  }
  if (bits % 8 != 0)
    throw error("does not end at the end of a byte");
  const auto& offsets = entry["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()
      || offsets[1].get<std::uint64_t>() > static_cast<std::uint64_t>(data_size)
      || offsets[0] > offsets[1])
    throw error("lies outside the file");
  result.begin = data + offsets[0].get<std::int64_t>();
  result.end = data + offsets[1].get<std::int64_t>();
  if (result.end - result.begin != bits / 8)
    throw error("has " + std::to_string(result.end - result.begin)
                + " bytes where its shape needs " + std::to_string(bits / 8));
  return result;
}

void check_coverage(std::vector<stored_tensor> tensors, std::int64_t data,
                    std::int64_t end) {
  std::ranges::stable_sort(tensors, {}, [](const stored_tensor& t) {
    return std::pair{t.begin, t.end}; // an empty tensor before the neighbour
  });
  for (const auto& t : tensors) {
    if (t.begin < data)
      throw malformed("tensor '" + t.name + "' overlaps another");
    if (t.begin > data)
      throw malformed("there is a gap before tensor '" + t.name + "'");
    data = t.end;
  }
  if (data != end)
    throw malformed("there are bytes after the last tensor");
}

/// Reads the tensors and the metadata of a file's header. \throws malformed
void read_header(const input_file& file, std::vector<stored_tensor>& tensors,
                 file_metadata& metadata) {
  std::array<char, 8> prefix{};
  if (file.size() == 0)
    throw malformed("it is empty");
  if (file.size() < std::int64_t{prefix.size()})
    throw malformed("it is shorter than the 8 bytes with the length of its header");
  file.read(0, prefix.data(), prefix.size());
  const auto length = std::bit_cast<std::uint64_t>(prefix);
  if (const auto most = static_cast<std::uint64_t>(file.size()) - prefix.size();
      length > most)
    throw malformed("its header has " + std::to_string(length)
                    + " bytes by its first 8 bytes, and at most " + std::to_string(most)
                    + " fit into the file");
  if (length > largest_header)
    throw malformed("its header has " + std::to_string(length)
                    + " bytes, and at most 100,000,000 are read");
  std::string text(length, '\0');
  file.read(8, text.data(), static_cast<std::int64_t>(length));
  const auto data = 8 + static_cast<std::int64_t>(length);
  const auto header = parse(text);
  for (const auto& [name, entry] : header.items())
    if (name != "__metadata__")
      tensors.push_back(tensor_of(name, entry, data, file.size() - data));
    else if (entry.is_object())
      for (const auto& [key, value] : entry.items())
        if (value.is_string())
          metadata[key] = value.get<std::string>();
  check_coverage(tensors, data, file.size());
}

std::string type_of(const tensor_to_store& t) {
  return t.stored == precision::bf16 ? "BF16" : "F32";
}

std::int64_t values_of(const tensor_to_store& t) {
  return stored_tensor{t.name, type_of(t), t.dims, 0, 0}.values();
}

std::int64_t bytes_of(const tensor_to_store& t) {
  return values_of(t) * bits_of_type(type_of(t)) / 8;
}

/// One sentence about a file that is not a safetensors file.
/// \param why the error in the header, used if the format is not known
std::string format_error(const input_file& file, const std::filesystem::path& path,
                         const std::string& why) {
  const auto result = path.string() + " is not a safetensors file: ";
  const auto format = format_of(file);
  if (!format || format->kind == format_kind::safetensors
      || (format->kind == format_kind::text && file.size() < 8))
    return result + why;
  const auto advice = advice_on(*format);
  if (format->kind == format_kind::binary)
    return result + "it is " + format->name
           + ", which the tool that wrote it can convert to safetensors";
  return result + "it is " + format->name + (advice.empty() ? "" : ": " + advice);
}

} // namespace

std::int64_t stored_tensor::values() const {
  std::int64_t result = 1;
  for (const auto dim : dims)
    result *= dim;
  return result;
}

bool stored_tensor::is_readable() const {
  return is_readable_type(type);
}

tl::expected<safetensors_file, std::string>
safetensors_file::open(const std::filesystem::path& path) {
  auto weights_path = weights_at(path);
  if (!weights_path)
    return tl::unexpected{weights_path.error()};
  auto file = input_file::open(*weights_path, "the weight file");
  if (!file)
    return tl::unexpected{file.error()};
  safetensors_file result{*weights_path};
  auto error = is_index(*weights_path, *file)
                 ? result.add_indexed(*file)
                 : result.add(std::move(*file), *weights_path);
  if (!error.empty())
    return tl::unexpected{std::move(error)};
  return result;
}

std::string safetensors_file::add(input_file file, const std::filesystem::path& path) {
  std::vector<stored_tensor> added;
  try {
    read_header(file, added, metadata_);
  } catch (const malformed& error) {
    return format_error(file, path, error.what());
  }
  for (auto& tensor : added) {
    if (!files_.empty() && find(tensor.name) != nullptr)
      return path.string() + ": tensor '" + tensor.name
             + "' is in another file of the model too";
    tensor.file = files_.size();
  }
  tensors_.insert(tensors_.end(), added.begin(), added.end());
  files_.push_back(std::move(file));
  return {};
}

std::string safetensors_file::add_indexed(const input_file& index) {
  const auto file_of = read_index(index);
  if (!file_of)
    return path_.string() + " " + file_of.error();
  std::map<std::string, std::size_t> number_of; // index of each file, by name
  for (const auto& [tensor, name] : *file_of)
    number_of.emplace(name, 0);
  for (auto& [name, number] : number_of) {
    number = files_.size();
    const auto path = path_.parent_path() / name;
    auto file = input_file::open(path, "the weight file");
    if (!file)
      return file.error() + "; " + path_.string() + " names it";
    if (auto error = add(std::move(*file), path); !error.empty())
      return error;
  }
  for (const auto& [name, file] : *file_of)
    if (const auto* const tensor = find(name);
        tensor == nullptr || tensor->file != number_of.at(file))
      return path_.string() + " says that tensor '" + name + "' is in " + file
             + ", which does not have it";
  return {};
}

const stored_tensor* safetensors_file::find(const std::string& name) const {
  const auto tensor = std::ranges::find(tensors_, name, &stored_tensor::name);
  return tensor != tensors_.end() ? &*tensor : nullptr;
}

void safetensors_file::read(const stored_tensor& tensor, std::int64_t first,
                            std::span<float> values) const {
  const auto& file = files_[tensor.file];
  const std::int64_t size = bits_of_type(tensor.type) / 8;
  const auto begin = tensor.begin + first * size,
             bytes = static_cast<std::int64_t>(values.size()) * size;
  if (tensor.type == "F32")
    return file.read(begin, values.data(), bytes);
  std::vector<char> stored(static_cast<std::size_t>(bytes));
  file.read(begin, stored.data(), bytes);
  widen_values(tensor.type, stored.data(), values);
}

std::string safetensors_header(std::span<const tensor_to_store> tensors,
                               const file_metadata& metadata) {
  nlohmann::ordered_json header{{"__metadata__", {{"format", "pt"}}}};
  header["__metadata__"].update(nlohmann::ordered_json(metadata));
  std::int64_t end = 0;
  for (const auto& t : tensors) {
    const auto begin = std::exchange(end, end + bytes_of(t));
    header[t.name] = {
      {"dtype", type_of(t)}, {"shape", t.dims}, {"data_offsets", {begin, end}}};
  }
  auto text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::string write_safetensors(const std::filesystem::path& path,
                              std::span<const tensor_to_store> tensors,
                              const file_metadata& metadata,
                              const std::function<void()>& on_complete) {
  std::vector<std::vector<bf16>> halves; // one array a tensor
  std::vector<std::string_view> data;
  for (const auto& t : tensors) {
    const void* from = t.values;
    if (t.stored == precision::bf16) {
      const auto values = values_of(t);
      auto& to = halves.emplace_back(static_cast<std::size_t>(values));
      round_row(t.values, values, to.data());
      from = to.data();
    }
    data.emplace_back(static_cast<const char*>(from),
                      static_cast<std::size_t>(bytes_of(t)));
  }
  const auto text = safetensors_header(tensors, metadata);
  const auto prefix = std::bit_cast<std::array<char, 8>>(std::uint64_t{text.size()});
  std::vector<std::string_view> pieces{{prefix.data(), prefix.size()}, text};
  pieces.insert(pieces.end(), data.begin(), data.end());
  return write_whole_file(path, pieces, on_complete);
}

} // namespace troupe
