// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe {

/// A file of events as TensorBoard reads them, also while it grows. It is a row of
/// records: the length of the data (8 bytes), a checksum of the length (4), the data,
/// and a checksum of these (4), all little-endian. The data is an Event of
/// TensorBoard's event.proto; the checksum is CRC-32C, masked.
class event_file {
public:
  /// Makes a new file, named as TensorBoard looks for it, in a folder that may hold
  /// others. On error says what is wrong.
  static tl::expected<event_file, std::string> in(const std::filesystem::path& folder);

  ~event_file();
  event_file(event_file&& other) noexcept;
  event_file& operator=(event_file&&) = delete;

  // Events at a step, of now. They are kept until write().

  /// A training begins, maybe anew: TensorBoard forgets what it has of later steps,
  /// also from older files of the folder.
  void add_start(std::int64_t step);
  void add_scalar(std::int64_t step, std::string_view tag, double value);
  /// \param text Markdown
  void add_text(std::int64_t step, std::string_view tag, std::string_view text);

  /// Puts all that was added behind what the file holds: whole records, by one call of
  /// the system. Empty on success, else one sentence; the file is as before then.
  std::string write();

  const std::filesystem::path& path() const { return path_; }

private:
  event_file(std::filesystem::path path, int file);

  std::filesystem::path path_;
  int file_;
  std::int64_t length_ = 0; // of what is in the file
  std::string added_;
};

} // namespace troupe
