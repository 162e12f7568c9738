// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Regular files that are read.

#include "models/descriptor.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace troupe {

/// A regular file, open for reading; the object owns the descriptor. Folders, FIFOs and
/// devices are refused immediately: reading a FIFO or a device may wait or continue for
/// ever. An open file stays the same file if another file takes the name. A program
/// that writes into the file changes the bytes that are read.
class input_file {
public:
  /// Opens a file for reading. The error is one sentence.
  /// \param description of the file for users: "the weight file"
  static tl::expected<input_file, std::string> open(const std::filesystem::path& path,
                                                    const std::string& description);

  /// Bytes of the file when open() was called.
  std::int64_t size() const { return size_; }

  /// Number of the descriptor, which this object owns.
  int number() const { return file_.number(); }

  /// Reads `bytes` bytes from offset `begin` on. Several threads may read at the same
  /// time.
  /// \throws std::runtime_error if the file ends before `begin` + `bytes`, or reading
  /// fails
  void read(std::int64_t begin, void* to, std::int64_t bytes) const;

  /// Returns a copy of all bytes.
  /// \throws std::runtime_error as read()
  std::string content() const;

  /// Checks that the file still has at least size() bytes.
  /// \throws std::runtime_error if the file has become shorter
  void check_size() const;

  /// Maps all bytes into memory, loaded page by page when read. The result owns the
  /// mapping, which may outlive this object.
  /// \pre the file is not empty
  /// \throws std::runtime_error if the system refuses
  std::shared_ptr<const void> mapped() const;

private:
  std::string name_; ///< Description and path, for errors.
  descriptor file_;
  std::int64_t size_ = 0;
};

} // namespace troupe
