// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/files/file_rows.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>
#include <utility>

namespace troupe {

using problem = tl::unexpected<std::string>;

namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> result;
  std::istringstream from{line};
  for (std::string cell; std::getline(from, cell, ',');) {
    std::erase_if(cell, [](unsigned char c) { return c <= ' ' || c == '"'; });
    if (!cell.empty())
      result.push_back(std::move(cell));
  }
  return result;
}

/// The text behind "# troupe", from the colon on; absent in a remark, and in a row of
/// cells.
std::optional<std::string> header_in(std::string_view line) {
  const auto skip = [&line](const char* characters) {
    line.remove_prefix(std::min(line.find_first_not_of(characters), line.size()));
  };
  skip(" \t\"");
  if (!line.starts_with('#'))
    return {};
  skip(" \t#");
  constexpr std::string_view ours = "troupe";
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  };
  if (line.size() < ours.size()
      || !std::ranges::equal(line.substr(0, ours.size()), ours, same))
    return {};
  line.remove_prefix(ours.size());
  if (!line.empty()
      && (std::isalnum(static_cast<unsigned char>(line[0])) || line[0] == '_'
          || line[0] == '-'))
    return {}; // a longer word
  skip(" \t");
  return std::string{line};
}

bool is_remark(const std::string& line) {
  const auto begin = line.find_first_not_of(" \t\r,\"");
  return begin == std::string::npos || line[begin] == '#';
}

} // namespace

tl::expected<file_rows, std::string> read_rows(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark))
    text.remove_prefix(byte_order_mark.size());
  file_rows result;
  std::istringstream from{std::string{text}};
  std::vector<std::pair<int, std::vector<std::string>>> lines; // line number and cells
  int number = 0;
  for (std::string line; std::getline(from, line);) {
    ++number;
    if (line.find('\0') != std::string::npos)
      return problem{"line " + std::to_string(number)
                     + " has a NUL byte, and a schedule file is text: save the file as "
                       "UTF-8, without NUL bytes"};
    if (const auto says = header_in(line)) {
      const problem error{
        "line " + std::to_string(number)
        + " does not have the form '# troupe: key=value,..' with each key once"};
      if (!says->starts_with(':'))
        return error;
      for (const auto& assignment : cells_of(says->substr(1))) {
        const auto equals = assignment.find('=');
        if (equals == std::string::npos
            || !result.values
                  .emplace(assignment.substr(0, equals), assignment.substr(equals + 1))
                  .second)
          return error;
      }
      continue;
    }
    if (is_remark(line)) {
      if (line.find("weights=") != std::string::npos)
        return problem{"line " + std::to_string(number)
                       + " is a comment with weights=, which has no effect: write '# "
                         "troupe: weights=...' to set weights"};
      continue;
    }
    lines.emplace_back(number, cells_of(line));
  }
  std::vector<std::string> all_cells;
  for (const auto& [line, cells] : lines)
    all_cells.insert(all_cells.end(), cells.begin(), cells.end());
  const auto notation = notation_of(all_cells);
  if (!notation)
    return problem{notation.error()};
  for (const auto& [line, cells] : lines) {
    auto& row = result.rows.emplace_back();
    for (const auto& cell : cells) {
      auto read = read_cell(cell, *notation);
      if (!read)
        return problem{"line " + std::to_string(line) + ": " + read.error()};
      row.push_back(std::move(*read));
    }
  }
  if (result.rows.empty())
    return problem{
      "the file has no action: write a row for each rank, for example 0F0,0F1,0B0,0B1"};
  return result;
}

} // namespace troupe
