// SPDX-License-Identifier: BSD-3-Clause
#include "planner/case_value.hpp"

#include "models/utf8.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::planner {

namespace {

/// A value as short text for a sentence.
std::string shown(const nlohmann::ordered_json& value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "an array of " + std::to_string(value.size());
  constexpr std::size_t longest = 40;
  auto text = json_text(value);
  if (text.size() > longest)
    text = utf8(text.substr(0, longest)) + "..";
  return text;
}

std::string member_place(const std::string& object, const std::string& name) {
  return object.empty() ? name : object + "." + name;
}

std::string element_place(const std::string& array, std::size_t index) {
  return array + "[" + std::to_string(index) + "]";
}

} // namespace

void case_value::mark_read(const nlohmann::ordered_json& value) const {
  if (read_)
    read_->insert(&value);
}

bool case_value::has(const std::string& name) const {
  if (!value_->is_object() || !value_->contains(name))
    return false;
  mark_read((*value_)[name]);
  return !(*value_)[name].is_null();
}

case_value case_value::member(const std::string& name) const {
  if (!value_->is_object())
    fail("is " + shown(*value_) + ", but an object with '" + name + "' is needed");
  if (!value_->contains(name))
    fail("has no '" + name + "'");
  mark_read((*value_)[name]);
  return {(*value_)[name], member_place(place_, name), read_};
}

std::vector<case_value> case_value::elements() const {
  if (!value_->is_array())
    fail("is " + shown(*value_) + ", but an array is needed");
  std::vector<case_value> result;
  for (const auto& element : *value_)
    result.emplace_back(element, element_place(place_, result.size()), read_);
  return result;
}

std::vector<case_value> case_value::elements(std::size_t count) const {
  auto result = elements();
  if (result.size() != count)
    fail("has " + std::to_string(result.size()) + " elements, but "
         + std::to_string(count) + " are needed");
  return result;
}

std::vector<std::pair<std::string, case_value>> case_value::members() const {
  if (!value_->is_object())
    fail("is " + shown(*value_) + ", but an object is needed");
  std::vector<std::pair<std::string, case_value>> result;
  for (const auto& [name, value] : value_->items()) {
    mark_read(value);
    result.emplace_back(name, case_value{value, member_place(place_, name), read_});
  }
  return result;
}

double case_value::number() const {
  const double result = value_->is_number() ? value_->get<double>() : -1;
  if (!(result >= 0 && result <= largest))
    fail("is " + shown(*value_) + ", but a number from 0 to 1e30 is needed");
  return result;
}

double case_value::positive() const {
  const double result = value_->is_number() ? value_->get<double>() : 0;
  if (!(result >= 1 / largest && result <= largest))
    fail("is " + shown(*value_) + ", but a number from 1e-30 to 1e30 is needed");
  return result;
}

int case_value::integer(int least, int most) const {
  const double result = value_->is_number() ? value_->get<double>() : std::nan("");
  if (!(result >= least && result <= most && result == std::floor(result)))
    fail("is " + shown(*value_) + ", but a whole number from " + std::to_string(least)
         + " to " + std::to_string(most) + " is needed");
  return static_cast<int>(result);
}

bool case_value::flag() const {
  if (value_->is_boolean())
    return value_->get<bool>();
  if (!value_->is_number() || (*value_ != 0 && *value_ != 1))
    fail("is " + shown(*value_) + ", but true, false, 1 or 0 is needed");
  return *value_ == 1;
}

std::string case_value::text() const {
  if (!value_->is_string())
    fail("is " + shown(*value_) + ", but a text is needed");
  return value_->get<std::string>();
}

std::vector<double> case_value::numbers() const {
  std::vector<double> result;
  for (const auto& element : elements())
    result.push_back(element.number());
  return result;
}

void case_value::fail(const std::string& mistake) const {
  throw case_error{(place_.empty() ? std::string{"the case"} : place_) + " " + mistake};
}

namespace {

constexpr int most_levels = 16; // no kind nests as many

void add_unread(std::vector<std::string>& to, const nlohmann::ordered_json& value,
                const std::string& place, const read_members& read, int level) {
  if (level > most_levels)
    return;
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i)
      add_unread(to, value[i], element_place(place, i), read, level + 1);
  if (!value.is_object())
    return;
  const auto is_read = [&](const auto& member) { return read.contains(&member); };
  if (std::ranges::none_of(value, is_read))
    return;
  for (const auto& [name, member] : value.items())
    if (is_read(member))
      add_unread(to, member, member_place(place, name), read, level + 1);
    else
      to.push_back(member_place(place, name));
}

} // namespace

std::vector<std::string> unread_places(const nlohmann::ordered_json& document,
                                       const read_members& read) {
  std::vector<std::string> result;
  add_unread(result, document, "", read, 0);
  return result;
}

} // namespace troupe::planner
