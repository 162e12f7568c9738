// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// While it lives, every few seconds a line on standard error asks for patience: a
/// program that sets up something large is at work. A signal's handler writes the line,
/// so that no thread is needed. One lives at a time.
class patience {
public:
  /// \param line without its end; empty: nothing is said
  explicit patience(const std::string& line);
  ~patience();

  patience(const patience&) = delete;
  patience& operator=(const patience&) = delete;
};

} // namespace troupe
