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
        wrong("there is no option '" + item.name + "'"
              + options_near(app_, item.name, ""));
      if (!option->get_configurable())
        wrong("'" + item.name
              + "' is not an option of a file: give it on the command line");
      if (!known.insert(option).second)
        wrong("'" + item.name + "' is given a second time: give each option once");
      item.inputs = values();
      if (item.inputs.empty())
        wrong("'" + item.name
              + "' has an empty list: give it a value, or leave it out");
      if (option->get_expected_max() == 0 && item.inputs.size() > 1)
        wrong("'" + item.name + "' is given a list: it is true or false");
      skip_space(false);
      if (!at_end() && peek() != '\n')
        wrong("a value is followed by more text: put a text with blanks in quotes");
      result.push_back(std::move(item));
    }
    return result;
  }

private:
  [[noreturn]] void wrong(const std::string& what) const {
    const auto line =
      1
      + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_),
                   '\n');
    throw config_mistake{"line " + std::to_string(line) + ": " + what};
  }

  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return text_[at_]; }

  /// Skips blanks and a comment, and with `over_lines` also line breaks.
  void skip_space(bool over_lines) {
    while (!at_end()) {
      if (peek() == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (peek() == ' ' || peek() == '\t' || peek() == '\r'
               || (over_lines && peek() == '\n'))
        ++at_;
      else
        return;
    }
  }

  std::string name() {
    constexpr auto shape =
      "a line is an option and its value, as steps = 100 or schedule = \"1f1b\"";
    if (peek() == '[')
      wrong("a file of options has no sections: leave the line in brackets out");
    const auto begin = at_;
    at_ = std::min(text_.find_first_of("=\n#", at_), text_.size());
    auto result = text_.substr(begin, at_ - begin);
    result.erase(result.find_last_not_of(" \t\r") + 1);
    const bool plain = std::ranges::all_of(result, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_';
    });
    if (at_end() || peek() != '=' || result.empty() || !plain) {
      at_ = begin;
      wrong(shape);
    }
    ++at_;
    return result;
  }

  std::vector<std::string> values() {
    skip_space(false);
    if (at_end() || peek() != '[')
      return {value("#\n")};
    std::vector<std::string> result;
    ++at_;
    for (skip_space(true); !at_end() && peek() != ']'; skip_space(true)) {
      result.push_back(value(",]#\n"));
      skip_space(true);
      if (!at_end() && peek() == ',')
        ++at_;
      else if (at_end() || peek() != ']')
        break;
    }
    if (at_end() || peek() != ']')
      wrong("this list has no end: write [\"gpipe\", \"1f1b\"]");
    ++at_;
    return result;
  }

  /// A text in quotes, or the text before any of the characters `ends`.
  std::string value(const char* ends) {
    const char quote = at_end() ? '\0' : peek();
    if (quote == '"' || quote == '\'')
      return quoted(quote);
    const auto begin = at_;
    at_ = std::min(text_.find_first_of(ends, at_), text_.size());
    auto result = text_.substr(begin, at_ - begin);
    result.erase(result.find_last_not_of(" \t\r") + 1);
    if (result.empty() || result.find_first_of(" \t\"'") != std::string::npos) {
      at_ = begin;
      wrong("a value is a number, true, false or a text in quotes");
    }
    return result;
  }

  std::string quoted(char quote) {
    static const std::map<char, char> escapes{
      {'"', '"'}, {'\\', '\\'}, {'n', '\n'}, {'t', '\t'}};
    std::string result;
    for (++at_; !at_end() && peek() != '\n'; ++at_) {
      if (peek() == quote) {
        ++at_;
        return result;
      }
      if (peek() == '\\' && quote == '"') {
        ++at_;
        if (at_end() || !escapes.contains(peek()))
          wrong("behind \\ stands one of \" \\ n t; a text in '...' takes \\ as it is");
        result += escapes.at(peek());
      } else {
        result += peek();
      }
    }
    wrong("this text has no end: close its quotes in the same line");
  }

  const CLI::App& app_;
  std::string text_;
  std::size_t at_ = 0;
};

} // namespace

std::vector<CLI::ConfigItem> config_reader::from_config(std::istream& input) const {
  auto text = without_byte_order_mark({std::istreambuf_iterator<char>{input}, {}});
  const bool binary = std::ranges::any_of(text, [](unsigned char c) {
    return c == 127 || (c < ' ' && c != '\n' && c != '\r' && c != '\t');
  });
  if (binary)
    throw config_mistake{
      "the file is not a text: write a line for each option, as steps = 100"};
  return reader{app_, std::move(text)}.items();
}

std::string unreadable(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0)
    return errno == ENOENT || errno == ENOTDIR
             ? "there is no file " + path
             : "cannot look for " + path + ": "
                 + std::error_code{errno, std::generic_category()}.message();
  if (!S_ISREG(about.st_mode))
    return path + " is not a file: name a file of options";
  if (access(path.c_str(), R_OK) != 0)
    return path + " cannot be read: change its permissions, or name another file";
  return {};
}

} // namespace troupe
