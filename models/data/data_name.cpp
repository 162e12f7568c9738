// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/data_name.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {

namespace {

/// The known keys; only these are cut off, as a path may itself contain `,other=`.
constexpr std::string_view keys[] = {"order", "width", "split"};

} // namespace

const std::vector<std::string>& data_kinds() {
  static const std::vector<std::string> kinds{"synthetic", "text", "tokens", "mnist"};
  return kinds;
}

data_name parse_data_name(const std::string& text) {
  const auto colon = text.find(':');
  data_name result{.kind = text.substr(0, colon)};
  if (colon == std::string::npos)
    return result;
  auto& path = result.path = text.substr(colon + 1);
  for (;;) {
    const auto comma = path.find_last_of(",:"), equals = path.find('=', comma);
    if (comma == std::string::npos || equals == std::string::npos)
      return result;
    const auto key = path.substr(comma + 1, equals - comma - 1);
    if (std::ranges::find(keys, key) == std::end(keys))
      return result;
    if (!result.values.emplace(key, path.substr(equals + 1)).second)
      result.repeated_key = key;
    path.resize(comma);
  }
}

} // namespace troupe
