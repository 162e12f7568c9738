// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe {

/// A file of events that TensorBoard reads, also while the file grows. The file is a
/// sequence of records. A record is the length of the data (8 bytes), a checksum of the
/// length (4), the data, and a checksum of the data (4). Numbers are little-endian. The
/// data is an Event of TensorBoard's event.proto; the checksum is CRC-32C, masked. The
/// destructor closes the file, and drops events that write() has not written.
class event_file {
public:
  /// Makes a new file in an existing folder, with a name that TensorBoard looks for.
  /// The folder may hold other files. The error is one sentence.
  static tl::expected<event_file, std::string> in(const std::filesystem::path& folder);

  ~event_file();
  event_file(event_file&& source) noexcept;
  event_file& operator=(event_file&&) = delete;

  // Functions that add an event at a step, with the current time. Events stay in memory
  // until write().

  /// Marks the first start of a training, or a later one. TensorBoard then drops all
  /// events from `step` on, also from older files of the folder.
  void add_start(std::int64_t step);
  void add_scalar(std::int64_t step, std::string_view tag, double value);
  /// \param text Markdown
  void add_text(std::int64_t step, std::string_view tag, std::string_view text);

  /// Appends all added events to the file: whole records, normally by one system call.
  /// Returns an empty text, or one sentence on failure. After a failure the file is cut
  /// to its length before the call, and the events stay in memory.
  std::string write();

  const std::filesystem::path& path() const { return path_; }

private:
  event_file(std::filesystem::path path, int file);

  std::filesystem::path path_;
  int file_;
  std::int64_t length_ = 0; // bytes in the file
  std::string added_;
};

} // namespace troupe
