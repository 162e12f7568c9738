// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// Writes a line to standard error every 5 seconds while the object exists, for a
/// program that sets up something large. The handler of SIGALRM writes the line, so
/// that no thread is needed. Only one object may live at a time.
class progress_notice {
public:
  /// \param line without a line break, cut to 99 bytes; empty: nothing is written
  explicit progress_notice(const std::string& line);
  ~progress_notice();

  progress_notice(const progress_notice&) = delete;
  progress_notice& operator=(const progress_notice&) = delete;
};

} // namespace troupe
