// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/parsing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

namespace troupe {

namespace {

/// Longer texts are not mistyped names.
constexpr std::size_t longest = 64;

/// The largest number of candidates that a sentence lists; a longer list is cut here.
constexpr std::size_t most_listed = 24;

/// The optimal string alignment distance: no part of a text is edited twice.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> earlier, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min(
        {last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], earlier[j - 2] + 1);
    }
    earlier = last;
    last = row;
  }
  return last[b.size()];
}

} // namespace

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream{text};
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  if (!text.empty() && text.back() == separator)
    parts.emplace_back();
  return parts;
}

std::string listed(const std::vector<std::string>& names) {
  std::string result;
  for (const auto& name : names)
    result += (result.empty() ? "" : ", ") + name;
  return result;
}

std::string without_byte_order_mark(std::string text) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  if (text.starts_with(mark))
    text.erase(0, mark.size());
  return text;
}

std::optional<double> decimal(std::string_view text) {
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc{} || stop != end || !std::isfinite(value))
    return {};
  return value;
}

std::optional<double> number(std::string_view text) {
  const auto value = decimal(text);
  return value && *value >= 0 ? value : std::nullopt;
}

std::string nearest(std::string_view typed,
                    const std::vector<std::string>& candidates) {
  if (typed.empty() || typed.size() > longest)
    return {};
  std::string result, continued;
  auto smallest = std::max<std::size_t>(typed.size() / 3, 1) + 1;
  std::size_t continuations = 0;
  for (const auto& candidate : candidates) {
    if (candidate.size() > longest)
      continue;
    const auto distance = edit_distance(typed, candidate);
    if (distance < smallest && distance < candidate.size()) {
      smallest = distance;
      result = candidate;
    }
    if (candidate.starts_with(typed)) {
      ++continuations;
      continued = candidate;
    }
  }
  return result.empty() && continuations == 1 ? continued : result;
}

std::vector<std::string> names_in(const std::string& list) {
  auto result = split(list, ',');
  for (auto& name : result)
    name.erase(0, name.find_first_not_of(' '));
  return result;
}

std::string did_you_mean(std::string_view typed,
                         const std::vector<std::string>& candidates) {
  const auto near = nearest(typed, candidates);
  return near.empty() ? "" : " (did you mean '" + near + "'?)";
}

std::string unknown_name(const std::string& noun, const std::string& typed,
                         const std::vector<std::string>& candidates) {
  auto result = "there is no " + noun + " '" + typed + "'"
                + did_you_mean(typed, candidates) + "; there are ";
  for (std::size_t i = 0; i < std::min(candidates.size(), most_listed); ++i)
    result += (i == 0 ? "" : ", ") + candidates[i];
  return result + (candidates.size() > most_listed ? ", .." : "");
}

} // namespace troupe
