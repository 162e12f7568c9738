// SPDX-License-Identifier: BSD-3-Clause
// Reads the project's documents for tests: sections with commands, pictures and tables.
#pragma once

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace documents {

using row = std::vector<std::string>;

/// The output that a document shows for a command.
struct picture {
  std::string command; ///< Command of the shell.
  std::vector<std::string> lines;
};

/// A command on a separate line, and the paragraph before that line.
struct command {
  std::string text;
  std::string paragraph;
};

struct table {
  row head;
  std::vector<row> rows;
};

/// The text between two headings.
struct section {
  std::string name;
  std::vector<picture> pictures;
  std::vector<command> commands;
  std::vector<table> tables;
};

inline std::string stripped(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string::npos
           ? ""
           : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

inline row cells_of(const std::string& line) {
  row result;
  std::istringstream cells{line.substr(1)};
  for (std::string cell; std::getline(cells, cell, '|');)
    result.push_back(stripped(cell));
  return result;
}

/// Reads a document line by line.
class reader {
public:
  explicit reader(const std::filesystem::path& path) {
    std::ifstream file{path};
    sections_.push_back({path.filename().string(), {}, {}, {}});
    for (std::string line; std::getline(file, line);)
      read(line);
  }

  std::vector<section> sections() && { return std::move(sections_); }

private:
  void read(const std::string& line) {
    if (line.starts_with("```"))
      return fence(line);
    if (fenced_)
      return read_fenced(line);
    if (line.starts_with("#")) {
      sections_.push_back(
        {stripped(line.substr(line.find_first_not_of('#'))), {}, {}, {}});
      paragraph_.clear();
    } else if (line.starts_with("    ./troupe ")) {
      here().commands.push_back({line.substr(4), last_});
    } else if (line.starts_with("|")) {
      read_row(line);
    } else if (line.empty()) {
      if (!paragraph_.empty())
        last_ = paragraph_;
      paragraph_.clear();
      in_table_ = false;
    } else {
      paragraph_ += line + ' ';
    }
  }

  /// A picture is the text after `$ ./troupe ..`, or after a command within the
  /// sentence before the fence.
  void fence(const std::string& line) {
    fenced_ = !fenced_;
    const auto begin = paragraph_.empty() ? last_ : paragraph_;
    static const std::regex within{"`(\\./troupe simulate [^`]*)`.*:\\s*$"};
    std::smatch found;
    if (fenced_ && line == "```" && std::regex_search(begin, found, within))
      here().pictures.push_back({found[1], {}});
    in_picture_ = fenced_ && !found.empty();
  }

  void read_fenced(const std::string& line) {
    if (line.starts_with("$ ")) {
      const bool goes_on = in_picture_ && here().pictures.back().lines.empty();
      if (goes_on) // this command prepares the next one
        here().pictures.back().command += "\n" + line.substr(2);
      else
        here().pictures.push_back({line.substr(2), {}});
      in_picture_ = true;
    } else if (in_picture_) {
      here().pictures.back().lines.push_back(line);
    }
  }

  void read_row(const std::string& line) {
    if (!in_table_)
      here().tables.push_back({cells_of(line), {}});
    else if (!line.starts_with("| ---"))
      here().tables.back().rows.push_back(cells_of(line));
    in_table_ = true;
  }

  section& here() { return sections_.back(); }

  std::vector<section> sections_;
  std::string paragraph_, last_;
  bool fenced_ = false, in_picture_ = false, in_table_ = false;
};

/// Returns all commands of a document, in order: on indented lines, in fences, and in
/// backticks within a line. A command begins with "./troupe" or "docs/", after a prompt
/// such as "a$" or none. Comments after a command are left out.
inline std::vector<std::string> commands_in(const std::filesystem::path& path) {
  static const std::regex line_of{
    "^(    )?([a-z]?\\$ )?((\\./troupe|docs/|mkdir)[a-z]* .*)$"};
  static const std::regex within{"`(\\./troupe [^`]*)`"}, comment{"  +#.*$"};
  std::vector<std::string> result;
  std::ifstream file{path};
  bool goes_on = false;
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    std::string command;
    if (goes_on)
      command = result.back() + stripped(line);
    else if (std::regex_match(line, found, line_of))
      command = found[3];
    if (!command.empty()) {
      if (goes_on)
        result.pop_back();
      result.push_back(stripped(std::regex_replace(command, comment, "")));
      goes_on = result.back().ends_with('\\');
      if (goes_on)
        result.back().pop_back();
      continue;
    }
    for (std::sregex_iterator i{line.begin(), line.end(), within}, end; i != end; ++i)
      result.push_back((*i)[1]);
  }
  return result;
}

inline std::vector<section> sections_of(const std::filesystem::path& path) {
  return reader{path}.sections();
}

} // namespace documents
