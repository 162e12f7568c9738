// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace troupe {

/// Joins the first parts, as long as the line fits into `width` columns. A part that is
/// too long, and all parts after it, are left out; the first part is cut to the width.
std::string fitting(const std::vector<std::string>& parts, std::size_t width);

/// Lines of progress on standard error. A terminal shows one line that changes; other
/// outputs get a line every few seconds. For one thread at a time.
class changing_line {
public:
  /// \param quiet true: no line is due
  /// \param shown_at time of the last line, in seconds of seconds_now()
  explicit changing_line(bool quiet, double shown_at = 0);

  /// True if the last line is older than 0.2 seconds on a terminal, or 5 seconds
  /// elsewhere. The line that is due then counts as shown.
  /// \param last true: due at any interval
  bool is_due(bool last);

  /// Shows the parts that fit into a terminal's width, elsewhere all parts.
  /// \param stays false: the next line replaces this line on a terminal
  void write(const std::vector<std::string>& parts, bool stays);

  /// Shows a whole text, in lines that stay.
  void write_whole(const std::string& text) { put(text, true); }

  /// Erases the changing line of a terminal, if there is one.
  void end();

private:
  std::string wiped() const;
  void put(const std::string& line, bool stays);

  bool quiet_;
  bool terminal_;
  std::size_t changes_ = 0; ///< Columns of a line that will change; 0: there is none.
  std::string written_;     ///< The last line; only a terminal gets it twice in a row.
  double shown_at_;
};

} // namespace troupe
