// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/config_file.hpp"

#include "experiments/options/parse_mistake.hpp"
#include "experiments/options/parsing.hpp"

#include <sys/stat.h>
#include <unistd.h>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <system_error>

namespace troupe {

namespace {

/// A part of toml++'s description of a mistake, and the sentence for the user. '%' is
/// the name in the description.
struct mistake_row {
  std::string_view part, sentence;
};

constexpr std::string_view no_sections = "a file of options has no sections: leave out "
                                         "lines in brackets, braces and dots in names";
constexpr mistake_row mistakes[] = {
  {"table header", no_sections},
  {"existing table", no_sections},
  {"redefine", "'%' is given a second time: give each option once"},
  {"expected '='",
   "a line needs an option and a value: write steps = 100 or schedule = "
   "\"1f1b\", for example"},
  {"root table", "a line begins with an option: write steps = 100, for example"},
  {"control characters",
   "a text in quotes has no end: close the quotes in the same line"},
  {"string", "the text in quotes is wrong: write the text in '...', which has no \\"},
  {"array", "the list has no end: write [\"gpipe\", \"1f1b\"]"},
  {"a comment or whitespace",
   "more text follows a value: put a text with blanks or commas in quotes"},
  {"utf-8", "the file is not UTF-8: save the file as UTF-8"},
  {"64 bits", "the number has more than 63 bits: write the number in quotes"},
  {"",
   "the value is wrong: write a number such as 7, 0.5 or 1.0, true, false or a text "
   "in quotes"},
};

[[noreturn]] void fail(const toml::source_position& place,
                       const std::string& sentence) {
  throw config_error{"line " + std::to_string(place.line) + ", column "
                     + std::to_string(place.column) + ": " + sentence};
}

std::string sentence_of(std::string_view description) {
  const auto row = std::ranges::find_if(mistakes, [&](const mistake_row& m) {
    return description.find(m.part) != std::string_view::npos;
  });
  std::string result{row->sentence};
  const auto quote = description.find('\'');
  if (const auto mark = result.find('%'); mark != std::string::npos)
    result.replace(mark, 1,
                   description.substr(quote + 1, description.rfind('\'') - quote - 1));
  return result;
}

/// The values of a file of options.
class option_file {
public:
  explicit option_file(std::string text)
    : text_(std::move(text)), lines_(split(text_, '\n')) {}

  /// \throws config_error if the text is not TOML
  toml::table table() const {
    auto parsed = toml::parse(std::string_view{text_});
    if (!parsed)
      fail(parsed.error().source().begin, sentence_of(parsed.error().description()));
    return std::move(parsed).table();
  }

  /// The texts of a value, or of the values of a list.
  /// \throws config_error if a value has a section or a list of its own
  std::vector<std::string> texts_of(const toml::node& node) const {
    if (node.is_table() || node.is_array_of_tables())
      fail(node.source().begin, std::string{no_sections});
    if (!node.is_array())
      return {text_of(node)};
    std::vector<std::string> result;
    for (const auto& entry : *node.as_array()) {
      if (entry.is_table() || entry.is_array())
        fail(entry.source().begin, "a list has only numbers and texts in quotes");
      result.push_back(text_of(entry));
    }
    return result;
  }

private:
  /// The content of a text in quotes. Other values as written, so that an option checks
  /// the digits itself.
  std::string text_of(const toml::node& node) const {
    if (const auto* const text = node.as_string())
      return text->get();
    const auto& [begin, end, path] = node.source();
    const auto& line = lines_[begin.line - 1];
    return line.substr(offset(line, begin.column),
                       offset(line, end.column) - offset(line, begin.column));
  }

  /// The offset of a column, which counts characters of UTF-8.
  static std::size_t offset(const std::string& line, std::size_t column) {
    std::size_t result = 0;
    for (; result < line.size(); ++result)
      if ((line[result] & 0xc0) != 0x80 && --column == 0)
        break;
    return result;
  }

  std::string text_;
  std::vector<std::string> lines_;
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
  const option_file file{std::move(text)};
  const auto table = file.table();
  std::vector<std::pair<toml::source_position, std::string>>
    names; // in the file's order
  for (const auto& [key, node] : table)
    names.emplace_back(key.source().begin, key.str());
  std::ranges::sort(names);
  std::vector<CLI::ConfigItem> result;
  std::set<const CLI::Option*> known; // an option may have two names
  for (const auto& [place, name] : names) {
    CLI::ConfigItem item;
    item.name = name;
    item.inputs = file.texts_of(*table.get(name));
    const auto* const option = app_.get_option_no_throw("--" + name);
    if (option == nullptr)
      fail(place, "there is no option '" + name + "'" + options_near(app_, name, ""));
    if (!option->get_configurable())
      fail(place, "'" + name
                    + "' is not an option of a file: type the option on the command "
                      "line");
    if (!known.insert(option).second)
      fail(place, "'" + name + "' is given a second time: give each option once");
    if (item.inputs.empty())
      fail(place,
           "'" + name + "' has an empty list: give a value, or leave the line out");
    if (option->get_expected_max() == 0 && item.inputs.size() > 1)
      fail(place, "'" + name + "' has a list: write true or false");
    result.push_back(std::move(item));
  }
  return result;
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
