// SPDX-License-Identifier: BSD-3-Clause
// Golden texts of one kind, in one file. A line `== NAME` begins the text of that name.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace troupe {

/// The texts of a file by name. Each line of a text ends with a line feed.
/// \param file a path in tests/golden; a missing file has no texts
inline std::map<std::string, std::string>
golden_sections(const std::filesystem::path& file) {
  std::map<std::string, std::string> result;
  std::ifstream in{std::filesystem::path{TROUPE_GOLDEN} / file};
  std::string* text = nullptr;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("== "))
      text = &result[line.substr(3)];
    else
      text->append(line + '\n');
  return result;
}

/// Writes the text of one name anew; the other texts of the file stay.
inline void write_golden_section(const std::filesystem::path& file,
                                 const std::string& name, const std::string& text) {
  auto sections = golden_sections(file);
  sections[name] = text;
  std::ofstream out{std::filesystem::path{TROUPE_GOLDEN} / file};
  for (const auto& [title, content] : sections)
    out << "== " << title << '\n' << content;
}

} // namespace troupe
