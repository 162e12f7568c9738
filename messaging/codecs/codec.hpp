// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

// Codecs: encodings of the values in messages of collectives, and the catalog of
// codecs.

namespace troupe {

/// Encodes and decodes the values in one rank's messages of a collective. For one
/// thread at a time.
///
/// Ranks that sum arrays agree on the sums to the bit, in any order of messages, for
/// two reasons. A rank keeps the values that its message has, not those before the
/// encoding. A sum encodes and decodes both of its terms. Messages forward sums, so
/// each value is encoded by itself, and a decoded value encodes to itself.
class codec {
public:
  codec() = default;
  codec(const codec&) = delete;
  codec& operator=(const codec&) = delete;
  virtual ~codec() = default;

  // Each function handles n values. In the payload, `first` values come before these.

  /// Writes encoded values to a payload, and replaces each value by the value that a
  /// receiver decodes.
  virtual void encode(float* values, std::int64_t n, float* payload,
                      std::int64_t first) = 0;

  /// to = decoded values.
  virtual void decode(const float* payload, std::int64_t first, std::int64_t n,
                      float* to) const = 0;

  /// to = encoded and decoded `to`, plus decoded values.
  virtual void add(const float* payload, std::int64_t first, std::int64_t n,
                   float* to) const = 0;

  /// Encodes and decodes a value, for plain references of sums.
  virtual float coded(float value) const = 0;
};

/// An entry of the catalog.
struct codec_entry {
  std::string_view name; ///< Value of --compress.
  std::string_view idea;
  /// Bytes of a message with n values, n at least 1: a multiple of 4.
  std::int64_t (*bytes)(std::int64_t n);
  std::unique_ptr<codec> (*make)();
};

/// All codecs; the first one sends fp32. Valid until the end of the program.
std::span<const codec_entry> codec_catalog();

/// The codec that sends values as they are.
const codec_entry& fp32_codec();

/// Returns the codec called `name`, or null.
const codec_entry* find_codec(std::string_view name);

/// The names of all codecs: "none, bf16".
std::string codec_names();

} // namespace troupe
