// SPDX-License-Identifier: BSD-3-Clause
// Golden texts of one kind, in one file. A line `== NAME` begins the text of that name.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

namespace troupe {

/// The texts of a file by name. Each line of a text ends with a line feed. A missing
/// file has no texts.
/// \throws std::runtime_error if the file does not begin with a name
inline std::map<std::string, std::string>
golden_sections(const std::filesystem::path& file) {
  std::map<std::string, std::string> result;
  std::ifstream in{file};
  std::string* text = nullptr;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("== "))
      text = &result[line.substr(3)];
    else if (text != nullptr)
      text->append(line + '\n');
    else
      throw std::runtime_error(file.string() + " does not begin with ==");
  return result;
}

/// The text of one name.
/// \throws std::runtime_error if the file has no such text
inline std::string golden_section(const std::filesystem::path& file,
                                  const std::string& name) {
  const auto sections = golden_sections(file);
  const auto found = sections.find(name);
  if (found == sections.end())
    throw std::runtime_error(file.string() + " has no text " + name);
  return found->second;
}

/// Writes the text of one name anew; the other texts of the file stay.
inline void write_golden_section(const std::filesystem::path& file,
                                 const std::string& name, const std::string& text) {
  auto sections = golden_sections(file);
  sections[name] = text;
  std::ofstream out{file};
  for (const auto& [title, content] : sections)
    out << "== " << title << '\n' << content;
}

} // namespace troupe
