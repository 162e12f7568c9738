// SPDX-License-Identifier: BSD-3-Clause
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <stdexcept>

namespace troupe {

using nlohmann::json;

std::string utf8(const std::string& text) {
  return json::parse(json_text(json(text))).get<std::string>();
}

std::string json_text(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

nlohmann::json shallow_json(const std::string& text, int most_depth) {
  return json::parse(text, [=](int depth, json::parse_event_t, const json&) {
    if (depth > most_depth)
      throw std::invalid_argument{"the JSON is nested too deep"};
    return true;
  });
}

} // namespace troupe
