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
/// devices are refused at once: reading one may wait or continue for ever. An open file
/// stays the same file, whatever is written under the same name.
class input_file {
public:
  /// \param description of the file for users: "the weight file". On error one
  /// sentence.
  static tl::expected<input_file, std::string> open(const std::filesystem::path& path,
                                                    const std::string& description);

  std::int64_t size() const { return size_; }
  int number() const { return file_.number(); }

  /// Reads `bytes` bytes from offset `begin` on. \throws std::runtime_error if the file
  /// does not have as many bytes there any more
  void read(std::int64_t begin, void* to, std::int64_t bytes) const;

  /// All bytes, in memory of the caller. \throws std::runtime_error as read()
  std::string content() const;

  /// \throws std::runtime_error if the file has become shorter
  void check_size() const;

  /// All bytes in memory, loaded page by page when read. The mapping outlives the
  /// object. \pre the file is not empty. \throws std::runtime_error if the system
  /// refuses
  std::shared_ptr<const void> mapped() const;

private:
  std::string name_; ///< Description and path, for errors.
  descriptor file_;
  std::int64_t size_ = 0;
};

} // namespace troupe
