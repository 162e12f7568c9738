// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/table_text.hpp"

#include <cmath>
#include <cstdio>

namespace troupe {

std::string in_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths.resize(std::max(widths.size(), c + 1));
      widths[c] = std::max(widths[c], row[c].size());
    }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - row[c].size(), ' ');
      text += c == 0 ? row[c] + space : "  " + space + row[c];
    }
    text += '\n';
  }
  return text;
}

std::string text(std::optional<double> x, const char* format) {
  if (!x || !std::isfinite(*x))
    return "-";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, *x);
  return buffer;
}

} // namespace troupe
