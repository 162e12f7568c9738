// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/descriptor.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace troupe {

/// A regular file, open for reading. Folders, FIFOs and devices are refused at once:
/// reading them may wait or go on for ever. Once open it stays the same file, whatever
/// is written under its name.
class input_file {
public:
  /// \param what it is to users: "the weight file". On error one sentence.
  static tl::expected<input_file, std::string> open(const std::filesystem::path& path,
                                                    const std::string& what);

  std::int64_t size() const { return size_; }
  int number() const { return file_.number(); }

  /// \throws std::runtime_error if the file has not as many bytes there any more
  void read(std::int64_t begin, void* to, std::int64_t bytes) const;

  /// All bytes, in memory of the caller. \throws std::runtime_error as read()
  std::string content() const;

  /// \throws std::runtime_error if it has become shorter
  void check_size() const;

  /// All its bytes in memory, page by page as they are read. Outlives the object.
  /// \pre it is not empty. \throws std::runtime_error if the system refuses
  std::shared_ptr<const void> mapped() const;

private:
  std::string name_; ///< What it is, and its path.
  descriptor file_;
  std::int64_t size_ = 0;
};

} // namespace troupe
