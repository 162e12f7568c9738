// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/parse_mistake.hpp"

#include "experiments/options/parsing.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace troupe {

std::string printable(std::string text) {
  std::ranges::replace_if(
    text, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return text;
}

std::string options_near(const CLI::App& app, const std::string& name,
                         const std::string& dashes) {
  std::vector<std::string> names;
  for (const auto* const option : app.get_options())
    if (!dashes.empty() || option->get_configurable())
      names.insert(names.end(), option->get_lnames().begin(),
                   option->get_lnames().end());
  const auto stem = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  const auto near = nearest(stem, names); // dashes would allow more edits
  return near.empty() ? "" : " (did you mean '" + dashes + near + "'?)";
}

std::string missing_value(const CLI::App& app) {
  for (const auto* const option : app.get_options())
    for (const auto& value : option->results())
      if (const auto name = value.substr(0, value.find('='));
          name.starts_with("--") && app.get_option_no_throw(name) != nullptr)
        return option->get_name() + " needs a value: " + name + " is an option";
  return {};
}

std::string sentence_of(const CLI::App& app, const CLI::ParseError& error) {
  if (auto missing = missing_value(app); !missing.empty())
    return missing;
  const auto text = printable(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const auto extra = printable(app.remaining().front());
    if (!extra.starts_with('-'))
      return "'" + extra + "' is no option" + options_near(app, extra, "--")
             + ": type -- before the name of an option";
    return "there is no option '" + extra + "'"
           + options_near(app, extra.substr(0, extra.find('=')), "--");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return text.substr(0, text.find(':')) + " needs a value";
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return text.substr(0, text.find(' ')) + " is missing";
  return text;
}

} // namespace troupe
