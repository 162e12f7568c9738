// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// Writes a line to standard error every few seconds while the object exists, as a
/// program sets up something large. A signal's handler writes the line, so that no
/// thread is needed. Only one object may live at a time.
class patience {
public:
  /// \param line without its line break; empty: nothing is written
  explicit patience(const std::string& line);
  ~patience();

  patience(const patience&) = delete;
  patience& operator=(const patience&) = delete;
};

} // namespace troupe
