// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/machine_options.hpp"
#include "experiments/options/option_row.hpp"
#include "models/input_file.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <utility>

namespace troupe {

namespace {

constexpr double largest = 1e12; // milliseconds, or bytes a second

/// Converts a latency and a bandwidth from a user's text.
std::optional<link_cost> link_of(const std::string& latency_ms,
                                 const std::string& bandwidth) {
  const auto latency = number(latency_ms), bytes_per_second = number(bandwidth);
  if (!latency || !bytes_per_second || *latency > largest || *bytes_per_second > largest
      || (*bytes_per_second > 0 && *bytes_per_second < 1))
    return {};
  return link_cost{static_cast<nanoseconds>(std::llround(*latency * 1e6)),
                   *bytes_per_second};
}

std::optional<int> machine_number(const std::string& text, int machines) {
  const auto value = number(text);
  if (!value || *value != std::floor(*value) || *value >= machines)
    return {};
  return static_cast<int>(*value);
}

/// Reads the links of a file into a model. Returns one sentence about the first wrong
/// line, else an empty text.
std::string read_links(const std::string& path, int machines, machine_model& to) {
  const auto file = input_file::open(path, "the links");
  if (!file)
    return "--machines: " + file.error();
  std::istringstream lines{without_byte_order_mark(file->content())};
  std::string line;
  for (int n = 1; std::getline(lines, line); ++n) {
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    if (line.empty() || line.front() == '#')
      continue;
    const auto parts = split(line, ',');
    const auto a =
      parts.size() == 4 ? machine_number(parts[0], machines) : std::nullopt;
    const auto b =
      parts.size() == 4 ? machine_number(parts[1], machines) : std::nullopt;
    const auto link = parts.size() == 4 ? link_of(parts[2], parts[3]) : std::nullopt;
    if (!a || !b || *a == *b || !link
        || !to.pairs.emplace(std::minmax(*a, *b), *link).second)
      return path + ":" + std::to_string(n) + ": write a pair of machines from 0 to "
             + std::to_string(machines - 1)
             + " once with milliseconds and bytes a second, for example 0,1,40,2.5e7";
  }
  return {};
}

} // namespace

option_rows machine_rows() {
  return under("Clock and costs", programs::without_measurements,
               {row<&typed_options::machines>("--machines", machines_help)});
}

tl::expected<machine_options, std::string>
parse_machines(const std::string& text, const link_cost& inside, int ranks) {
  machine_options result{.model = {.inside = inside}, .links = {}};
  if (text.empty())
    return result;
  const auto error_in = [&](const std::string& part) {
    return problem{
      "--machines '" + part
      + "': write ranks=8,latency=0.05,bandwidth=1e9 with milliseconds and bytes a "
        "second, and at the end links=FILE where pairs of machines differ"};
  };
  const auto links = text.find(",links="); // the rest of the text, also with commas
  std::string latency = "0", bandwidth = "0", each;
  std::string seen_keys;
  for (const auto& part : split(text.substr(0, links), ',')) {
    const auto equals = part.find('=');
    const auto key = part.substr(0, equals);
    auto* const target = key == "ranks"       ? &each
                         : key == "latency"   ? &latency
                         : key == "bandwidth" ? &bandwidth
                                              : nullptr;
    if (equals == std::string::npos || target == nullptr
        || seen_keys.find(key + ',') != std::string::npos)
      return error_in(part);
    seen_keys += key + ',';
    *target = part.substr(equals + 1);
  }
  const auto on_each = number(each);
  const auto between = link_of(latency, bandwidth);
  if (!on_each || *on_each < 1 || *on_each > 1 << 20 || *on_each != std::floor(*on_each)
      || !between)
    return error_in(text);
  auto& model = result.model;
  model.ranks_each = static_cast<int>(*on_each);
  model.between = *between;
  if (links == std::string::npos)
    return result;
  result.links = text.substr(links + 7);
  const int machines = model.machine_of(ranks - 1) + 1;
  if (auto bad = read_links(result.links, machines, model); !bad.empty())
    return problem{bad};
  return result;
}

} // namespace troupe
