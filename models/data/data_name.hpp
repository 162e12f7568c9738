// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The text of --data, as parts.

#include <map>
#include <string>
#include <vector>

namespace troupe {

/// Kinds of data.
const std::vector<std::string>& data_kinds();

/// The kinds with the text that follows each, for error messages.
inline constexpr const char* known_data =
  "synthetic, text:PATH, tokens:PATH or mnist:FOLDER";

/// The parts of the text of --data: `KIND:PATH,key=value,..`.
struct data_name {
  std::string kind; ///< "text", up to the first colon.
  std::string path; ///< Empty: the data need no file.
  /// Known keys after the path: `order`, `width`, `split`.
  std::map<std::string, std::string> values;
  std::string repeated_key; ///< A key that the text has twice; empty: there is none.
};

/// Cuts the text into parts, and refuses nothing.
data_name parse_data_name(const std::string& text);

} // namespace troupe
