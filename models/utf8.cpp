// SPDX-License-Identifier: BSD-3-Clause
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <set>
#include <stdexcept>
#include <vector>

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

nlohmann::ordered_json json_of_single_members(const std::string& text) {
  using nlohmann::ordered_json;
  std::vector<std::set<std::string>> names; // of the objects that are open
  return ordered_json::parse(
    text, [&](int, ordered_json::parse_event_t event, const ordered_json& value) {
      if (event == ordered_json::parse_event_t::object_start)
        names.emplace_back();
      else if (event == ordered_json::parse_event_t::object_end)
        names.pop_back();
      else if (event == ordered_json::parse_event_t::key
               && !names.back().insert(value.get<std::string>()).second)
        throw std::invalid_argument{"an object has the member '"
                                    + value.get<std::string>() + "' twice"};
      return true;
    });
}

} // namespace troupe
