// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A value of a case file with its place, so that each mistake is one sentence such as
// "graph.operators[3] has no 'size'".

#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace troupe::planner {

/// A mistake in a case file, as one sentence with its place.
struct case_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Members of a document that a reader asked for.
using read_members = std::unordered_set<const nlohmann::ordered_json*>;

/// A value of a JSON document. Functions that return a value throw case_error if the
/// document has another one at this place. The document must outlive the object.
class case_value {
public:
  /// \param read is told each member that is asked for; may be null
  case_value(const nlohmann::ordered_json& value, std::string place,
             read_members* read = nullptr)
    : value_(&value), place_(std::move(place)), read_(read) {
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

  double number() const;   ///< 0 to `largest`.
  double positive() const; ///< 1 / `largest` to `largest`.
  int integer(int least, int most) const;
  bool flag() const; ///< true, false, 1 or 0.
  std::string text() const;
  std::vector<double> numbers() const;

  /// Throws case_error: "PLACE MISTAKE".
  [[noreturn]] void fail(const std::string& mistake) const;

  /// Sums and products of such numbers are finite.
  static constexpr double largest = 1e30;

private:
  void mark_read(const nlohmann::ordered_json& value) const;

  const nlohmann::ordered_json* value_;
  std::string place_;
  read_members* read_;
};

/// Places of members that no reader asked for, beside members that one asked for.
std::vector<std::string> unread_places(const nlohmann::ordered_json& document,
                                       const read_members& read);

} // namespace troupe::planner
