// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/config_file.hpp"

#include "experiments/options/parse_mistake.hpp"
#include "experiments/options/parsing.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

namespace troupe {

namespace {

/// Parses a whole text from its beginning.
class reader {
public:
  reader(const CLI::App& app, std::string text) : app_(app), text_(std::move(text)) {}

  std::vector<CLI::ConfigItem> items() {
    std::vector<CLI::ConfigItem> result;
    std::set<const CLI::Option*> known; // an option may have two names
    for (skip_space(true); !at_end(); skip_space(true)) {
      CLI::ConfigItem item;
      item.name = name();
      const auto* const option = app_.get_option_no_throw("--" + item.name);
      if (option == nullptr)
        fail("there is no option '" + item.name + "'"
             + options_near(app_, item.name, ""));
      if (!option->get_configurable())
        fail("'" + item.name
             + "' is not an option of a file: type the option on the command line");
      if (!known.insert(option).second)
        fail("'" + item.name + "' is given a second time: give each option once");
      item.inputs = values();
      if (item.inputs.empty())
        fail("'" + item.name
             + "' has an empty list: give a value, or leave the line out");
      if (option->get_expected_max() == 0 && item.inputs.size() > 1)
        fail("'" + item.name + "' has a list: write true or false");
      skip_space(false);
      if (!at_end() && peek() != '\n')
        fail("more text follows a value: put a text with blanks in quotes");
      result.push_back(std::move(item));
    }
    return result;
  }

private:
  [[noreturn]] void fail(const std::string& message) const {
    const auto line =
      1
      + std::count(text_.begin(),
                   text_.begin() + static_cast<std::ptrdiff_t>(position_), '\n');
    throw config_error{"line " + std::to_string(line) + ": " + message};
  }

  bool at_end() const { return position_ == text_.size(); }
  char peek() const { return text_[position_]; }

  /// Skips blanks and a comment, and with `over_lines` also line breaks.
  void skip_space(bool over_lines) {
    while (!at_end()) {
      if (peek() == '#')
        position_ = std::min(text_.find('\n', position_), text_.size());
      else if (peek() == ' ' || peek() == '\t' || peek() == '\r'
               || (over_lines && peek() == '\n'))
        ++position_;
      else
        return;
    }
  }

  std::string name() {
    constexpr auto shape = "a line needs an option and a value: write steps = 100 or "
                           "schedule = \"1f1b\", for example";
    if (peek() == '[')
      fail("a file of options has no sections: leave the line in brackets out");
    const auto begin = position_;
    position_ = std::min(text_.find_first_of("=\n#", position_), text_.size());
    auto result = text_.substr(begin, position_ - begin);
    result.erase(result.find_last_not_of(" \t\r") + 1);
    const bool plain = std::ranges::all_of(result, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_';
    });
    if (at_end() || peek() != '=' || result.empty() || !plain) {
      position_ = begin;
      fail(shape);
    }
    ++position_;
    return result;
  }

  std::vector<std::string> values() {
    skip_space(false);
    if (at_end() || peek() != '[')
      return {value("#\n")};
    std::vector<std::string> result;
    ++position_;
    for (skip_space(true); !at_end() && peek() != ']'; skip_space(true)) {
      result.push_back(value(",]#\n"));
      skip_space(true);
      if (!at_end() && peek() == ',')
        ++position_;
      else if (at_end() || peek() != ']')
        break;
    }
    if (at_end() || peek() != ']')
      fail("the list has no end: write [\"gpipe\", \"1f1b\"]");
    ++position_;
    return result;
  }

  /// A text in quotes, or the text before any of the characters `ends`.
  std::string value(const char* ends) {
    const char quote = at_end() ? '\0' : peek();
    if (quote == '"' || quote == '\'')
      return quoted(quote);
    const auto begin = position_;
    position_ = std::min(text_.find_first_of(ends, position_), text_.size());
    auto result = text_.substr(begin, position_ - begin);
    result.erase(result.find_last_not_of(" \t\r") + 1);
    if (result.empty() || result.find_first_of(" \t\"'") != std::string::npos) {
      position_ = begin;
      fail("the value is wrong: write a number, true, false or a text in quotes");
    }
    return result;
  }

  std::string quoted(char quote) {
    static const std::map<char, char> escapes{
      {'"', '"'}, {'\\', '\\'}, {'n', '\n'}, {'t', '\t'}};
    std::string result;
    for (++position_; !at_end() && peek() != '\n'; ++position_) {
      if (peek() == quote) {
        ++position_;
        return result;
      }
      if (peek() == '\\' && quote == '"') {
        ++position_;
        if (at_end() || !escapes.contains(peek()))
          fail("only \" \\ n t are allowed after a \\ in quotes \"...\": write the "
               "text in '...'");
        result += escapes.at(peek());
      } else {
        result += peek();
      }
    }
    fail("a text in quotes has no end: close the quotes in the same line");
  }

  const CLI::App& app_;
  std::string text_;
  std::size_t position_ = 0;
};

} // namespace

std::vector<CLI::ConfigItem> config_reader::from_config(std::istream& input) const {
  auto text = without_byte_order_mark({std::istreambuf_iterator<char>{input}, {}});
  const bool binary = std::ranges::any_of(text, [](unsigned char c) {
    return c == 127 || (c < ' ' && c != '\n' && c != '\r' && c != '\t');
  });
  if (binary)
    throw config_error{
      "the file is not a text: write a line for each option, for example steps = 100"};
  return reader{app_, std::move(text)}.items();
}

std::string read_error(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0)
    return errno == ENOENT || errno == ENOTDIR
             ? "there is no file " + path
             : "cannot look for " + path + ": "
                 + std::error_code{errno, std::generic_category()}.message();
  if (!S_ISREG(status.st_mode))
    return path + " is not a file: name a file of options";
  if (access(path.c_str(), R_OK) != 0)
    return path + " cannot be read: change its permissions, or name another file";
  return {};
}

} // namespace troupe
