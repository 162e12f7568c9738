// SPDX-License-Identifier: BSD-3-Clause
// Reads TensorBoard's event files by the publishers' definitions, without the project's
// code. Records follow TensorFlow's record_writer.h, and CRC-32C follows RFC 3720.
// Messages follow Protocol Buffers' encoding and event.proto, summary.proto and
// tensor.proto.

#pragma once

#include "tests/experiments/run_program.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tensorboard {

/// RFC 3720: polynomial 11EDC6F41, bits reflected, registers begin and end inverted.
/// Computed by definition, bit by bit: the message polynomial is divided.
inline std::uint32_t crc32c(std::string_view data) {
  const auto reflected = [](std::uint32_t bits, int count) {
    std::uint32_t result = 0;
    for (int i = 0; i < count; ++i)
      result |= ((bits >> i) & 1U) << (count - 1 - i);
    return result;
  };
  std::uint32_t rest = 0xffffffffU;
  for (const unsigned char byte : data) {
    rest ^= reflected(byte, 8) << 24U;
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest << 1U) ^ ((rest & 0x80000000U) != 0 ? 0x1edc6f41U : 0U);
  }
  return reflected(rest ^ 0xffffffffU, 32);
}

/// The masked CRC of record_writer.h: rotated right by 15 bits, plus a constant.
inline std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

template <class Number>
Number number_at(std::string_view data, std::size_t at) {
  if (at + sizeof(Number) > data.size())
    throw std::runtime_error("an event file ends within a number");
  Number result{};
  for (std::size_t i = 0; i < sizeof result; ++i)
    result |= static_cast<Number>(static_cast<unsigned char>(data[at + i]))
              << static_cast<Number>(8 * i);
  return result;
}

/// Contents of a message's fields, by field number; numbers are stored as eight bytes.
using message = std::multimap<unsigned, std::string>;

inline std::uint64_t varint_at(std::string_view data, std::size_t& at) {
  std::uint64_t result = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (at >= data.size() || shift > 63)
      throw std::runtime_error("a varint does not end");
    const auto byte = static_cast<unsigned char>(data[at++]);
    result |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80U)
      return result;
  }
}

inline message message_of(std::string_view data) {
  message result;
  for (std::size_t at = 0; at < data.size();) {
    const auto key = varint_at(data, at);
    std::string value;
    std::size_t length = 0;
    switch (key & 7U) {
    case 0: {
      const auto number = varint_at(data, at);
      value.assign(reinterpret_cast<const char*>(&number), sizeof number);
      break;
    }
    case 1:
      length = 8;
      break;
    case 2:
      length = varint_at(data, at);
      break;
    case 5:
      length = 4;
      break;
    default:
      throw std::runtime_error("a field of no known kind");
    }
    if (length > data.size() - at)
      throw std::runtime_error("a field goes beyond its message");
    if (length > 0)
      value = data.substr(at, length);
    at += length;
    result.emplace(static_cast<unsigned>(key >> 3U), value);
  }
  return result;
}

inline std::string field(const message& of, unsigned number) {
  const auto found = of.find(number);
  return found == of.end() ? "" : found->second;
}

template <class Value>
Value as(const std::string& bytes) {
  Value result{};
  if (bytes.size() < sizeof result)
    throw std::runtime_error("a field is shorter than its type");
  std::memcpy(&result, bytes.data(), sizeof result);
  return result;
}

/// The data of all records of a file with correct checksums.
inline std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < file.size();) {
    const auto length = number_at<std::uint64_t>(file, at);
    if (number_at<std::uint32_t>(file, at + 8) != masked(crc32c(file.substr(at, 8))))
      throw std::runtime_error("the checksum of a length does not hold");
    if (length > file.size() - at - 12)
      throw std::runtime_error("an event file ends within a record");
    result.push_back(file.substr(at + 12, length));
    if (number_at<std::uint32_t>(file, at + 12 + length)
        != masked(crc32c(result.back())))
      throw std::runtime_error("the checksum of a record does not hold");
    at += 16 + length;
  }
  return result;
}

/// A value at a step.
struct point {
  std::int64_t step;
  float value;
  bool operator==(const point&) const = default;
};

/// The contents of an event file.
struct events {
  std::string version;
  std::vector<double> wall_times;
  std::vector<std::int64_t> starts; // steps of sessions' starts
  std::map<std::string, std::vector<point>> scalars;
  std::map<std::string, std::string> texts;
};

inline events events_of(const std::string& file) {
  events result;
  for (const auto& record : records_of(file)) {
    const auto event = message_of(record);
    result.wall_times.push_back(as<double>(field(event, 1)));
    const auto step = as<std::int64_t>(field(event, 2));
    if (event.contains(3))
      result.version = field(event, 3);
    if (event.contains(7)
        && as<std::int64_t>(field(message_of(field(event, 7)), 1)) == 1) {
      result.starts.push_back(step);
      result.texts.clear(); // as TensorBoard drops the texts of these steps
    }
    const auto summary = message_of(field(event, 5));
    for (auto [one, end] = summary.equal_range(1); one != end; ++one) {
      const auto value = message_of(one->second);
      const auto tag = field(value, 1);
      if (value.contains(2))
        result.scalars[tag].push_back({step, as<float>(field(value, 2))});
      const auto plugin = message_of(field(message_of(field(value, 9)), 1));
      const auto tensor = message_of(field(value, 8));
      constexpr std::int64_t string = 7; // types.proto
      if (field(plugin, 1) == "text" && as<std::int64_t>(field(tensor, 1)) == string)
        result.texts[tag] = field(tensor, 8);
    }
  }
  return result;
}

/// The event files of a folder, in TensorBoard's order of reading.
inline std::vector<std::filesystem::path>
files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> result;
  for (const auto& one : std::filesystem::directory_iterator{folder})
    if (one.path().filename().string().starts_with("events.out.tfevents."))
      result.push_back(one.path());
  std::sort(result.begin(), result.end());
  return result;
}

inline events events_in(const std::filesystem::path& folder) {
  return events_of(content_of(files_in(folder).back()));
}

} // namespace tensorboard
