// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The identity of a data set: runs and nodes compare it before they trust each other's
// samples.

#include "kernels/checksum.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace troupe {

/// A value that two data sets share if, and only if, they give the same samples to the
/// same model with the same seed. Paths and names of files are no part of it.
struct data_identity {
  std::string kind; ///< "text", "tokens of 16 bits"; of synthetic data the definition.
  std::int64_t bytes = 0;     ///< Of all files, unpacked; 0 without files.
  std::uint64_t checksum = 0; ///< XXH3 of these bytes (64 bits); 0 without files.

  bool operator==(const data_identity&) const = default;
};

/// "text, 1000 bytes, XXH3 78af5f94892f3950", or the definition of synthetic data.
std::string to_string(const data_identity& data);

/// A sum in 16 hexadecimal digits, as `xxhsum -H3` prints it.
std::string text_of_sum(std::uint64_t sum);

/// Size and XXH3 of files, read piece by piece in a fixed order.
class content_sum {
public:
  void add(std::span<const std::byte> bytes);

  /// The identity of a data set that read the bytes added so far.
  data_identity identity(std::string kind) const;

private:
  running_checksum sum_;
  std::int64_t bytes_ = 0;
};

} // namespace troupe
