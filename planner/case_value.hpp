// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A value of a case file with its place, so that each mistake is one sentence such as
// "graph.operators[3] has no 'size'".

#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe::planner {

/// A mistake in a case file, as one sentence with its place.
struct case_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A value of a JSON document. Functions that return a value throw case_error if the
/// document has another one at this place. The document must outlive the object.
class case_value {
public:
  case_value(const nlohmann::ordered_json& value, std::string place)
    : value_(&value), place_(std::move(place)) {
    // nop
  }

  const nlohmann::ordered_json& json() const { return *value_; }
  const std::string& place() const { return place_; }

  /// Whether this object has a member that is not null.
  bool has(const std::string& name) const;
  bool is_null() const { return value_->is_null(); }

  case_value member(const std::string& name) const;
  std::vector<case_value> elements() const;
  /// The elements of an array of this length.
  std::vector<case_value> elements(std::size_t count) const;
  /// Names and values of an object, in the file's order.
  std::vector<std::pair<std::string, case_value>> members() const;

  double number() const; ///< Finite, 0 or more.
  double positive() const;
  int integer(int least, int most) const;
  bool flag() const; ///< true, false, 1 or 0.
  std::string text() const;
  std::vector<double> numbers() const;

  /// Throws case_error: "PLACE MISTAKE".
  [[noreturn]] void fail(const std::string& mistake) const;

private:
  const nlohmann::ordered_json* value_;
  std::string place_;
};

} // namespace troupe::planner
