// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The identity of a data set. A resumed run, and each node of a run, compares
// identities before samples are trusted to be the same.

#include "kernels/checksum.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace troupe {

/// The identity of a data set. Data sets with equal identities give the same samples to
/// the same model with the same seed. The samples may be equal with different
/// identities: a header of a file counts. Paths and names of files are no part of an
/// identity.
struct data_identity {
  std::string kind; ///< "text", "tokens of 16 bits"; for synthetic data the definition.
  std::int64_t bytes = 0;     ///< Bytes of all files, unpacked; 0 without files.
  std::uint64_t checksum = 0; ///< XXH3 of the files' bytes (64 bits); 0 without files.

  bool operator==(const data_identity&) const = default;
};

/// The identity as text: "text, 1000 bytes, XXH3 78af5f94892f3950", or the definition
/// of synthetic data.
std::string to_string(const data_identity& data);

/// A checksum in 16 hexadecimal digits, as the program `xxhsum -H3` prints.
std::string text_of_sum(std::uint64_t sum);

/// The size in bytes and the XXH3 of files, read block by block in a fixed order.
class content_sum {
public:
  void add(std::span<const std::byte> bytes);

  /// The identity of a data set that has read the bytes added so far.
  data_identity identity(std::string kind) const;

private:
  running_checksum sum_;
  std::int64_t bytes_ = 0;
};

} // namespace troupe
