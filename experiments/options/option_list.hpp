// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/parsing.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe {

template <class Value>
inline constexpr bool is_list = false;
template <class Value>
inline constexpr bool is_list<std::vector<Value>> = true;

/// One sentence about a text that is no value of `Value`, or of its entries; else an
/// empty text. CLI11 alone reads 010 as 8, 0x10 as 16, an empty text as 0, and a number
/// that is too large as the largest one.
template <class Value>
std::string text_error(const std::string& text) {
  if constexpr (is_list<Value> || requires(Value v) { v.has_value(); })
    return text_error<typename Value::value_type>(text);
  else if constexpr (std::is_same_v<Value, bool>)
    return text == "true" || text == "false"
             ? ""
             : "'" + text + "' is neither true nor false";
  else if constexpr (std::integral<Value>)
    return whole_number<Value>(text)
             ? ""
             : "'" + text + "' is not a whole number in plain decimal"
                 + (std::unsigned_integral<Value> ? " from 0 to " : " of at most ")
                 + std::to_string(std::numeric_limits<Value>::max());
  else if constexpr (std::floating_point<Value>)
    return decimal(text)
             ? ""
             : "'" + text
                 + "' is not a number in plain decimal, for example 0.5 or 1e-3";
  else if (text.empty())
    return "the value is empty: give a value, or leave the option out";
  else if (std::ranges::any_of(text,
                               [](unsigned char c) { return c < ' ' || c == 127; }))
    return "the value has a control character, for example a line break: leave the "
           "character out";
  return {};
}

/// The options of a program. Each text is checked before CLI11 parses the text, except
/// the values of add_text(). An option whose value is no list may be given once. If the
/// option is given several times, CLI11 keeps the last value, and given_twice() names
/// the option. Parsing writes to the `target` of each option, which must outlive this
/// object.
class option_list {
public:
  /// \param app outlives this object
  explicit option_list(CLI::App& app) : app_(app) {}

  /// Sets the heading under which --help-all lists the options that are added next.
  void begin_group(const std::string& heading) { heading_ = heading; }

  template <class Value>
  CLI::Option* add_option(const std::string& names, Value& target,
                          const std::string& description) {
    return checked<Value>(app_.add_option(names, target, description));
  }

  /// Adds an option whose value is any text, which may have several lines.
  CLI::Option* add_text(const std::string& name, std::optional<std::string>& target,
                        const std::string& description) {
    const auto read = [&target](const CLI::results_t& texts) {
      target = texts.back(); // CLI11 alone reads an empty text as no value
      return true;
    };
    return placed<std::string>(app_.add_option(name, read, description))
      ->type_name("TEXT");
  }

  CLI::Option* add_flag(const std::string& names, bool& target,
                        const std::string& description) {
    return checked<bool>(app_.add_flag(names, target, description));
  }

  /// Adds an option that may stand without a value. `target` is "true" then, and also
  /// after an empty value.
  /// \param value form of the value in help texts: "[PORT]"
  CLI::Option* add_switch(const std::string& names, std::string& target,
                          const std::string& value, const std::string& description) {
    const auto read = [&target](const CLI::results_t& texts) {
      target = texts.empty() || texts.back().empty() ? "true" : texts.back();
      return true;
    };
    return checked<std::string>(app_.add_option(names, read, description))
      ->expected(0, 1)
      ->type_name(value);
  }

  /// Adds the option that names a file with options. An application has at most one
  /// such option.
  CLI::Option* add_file(const std::string& name, const std::string& description) {
    return checked<std::string>(app_.set_config(name, "", description));
  }

  /// The name of an option that takes one value and was given several times; empty if
  /// there is none. Valid after the application has parsed the command line.
  std::string given_twice() const {
    for (const auto* option : single_)
      if (option->count() > 1)
        return option->get_name();
    return {};
  }

private:
  template <class Value>
  CLI::Option* checked(CLI::Option* added) {
    added->check([](const std::string& text) {
      // CLI11 prints the sentence in one line, so control characters are replaced.
      auto fault = text_error<Value>(text);
      std::ranges::replace_if(
        fault, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
      return fault;
    });
    return placed<Value>(added);
  }

  template <class Value>
  CLI::Option* placed(CLI::Option* added) {
    added->group(heading_);
    if constexpr (!is_list<Value>) {
      added->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      single_.push_back(added);
    }
    return added;
  }

  CLI::App& app_;
  std::string heading_ = "Options"; // the default of CLI11
  std::vector<const CLI::Option*> single_;
};

} // namespace troupe
