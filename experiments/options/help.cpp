// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/help.hpp"

#include "experiments/options/build_info.hpp"
#include "experiments/options/parsing.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <sstream>
#include <vector>

namespace troupe {

namespace {

using std::string;

constexpr std::size_t description_column = 31;
constexpr std::size_t table_indent = 8;    ///< Below 20, else help2man joins the rows.
constexpr const char* general = "General"; ///< The group of --help itself.
constexpr const char* ungrouped = "Options";

/// Options of --help in programs whose options have groups, the most used first.
constexpr const char* common_names =
  "--case --planner --planners --devices --page --learn --vary --seeds --jobs "
  "--continue "
  "--weights --prompt --tokens --temperature --top-k --sequences --samples "
  "--ranks --bytes --operation --algorithm --latency --bandwidth --model --data "
  "--layers --d-model --heads --seq --init --schedule --stages --mesh --steps "
  "--epochs --batch --microbatches --optimizer --lr --seed --device --precision "
  "--clock --cost --machines --nodes --checkpoint --checkpoint-every --resume "
  "--save --report --watch --print --all";

/// Appends words to a line that already has `indent` characters, and ends the line.
void append_words(string& to, const string& text, std::size_t indent) {
  auto used = indent;
  std::istringstream words{text};
  for (string word; words >> word;) {
    if (used > indent && used + 1 + word.size() > help_width) {
      to += '\n' + string(indent, ' ');
      used = indent;
    } else if (used > indent) {
      to += ' ';
      ++used;
    }
    to += word;
    used += word.size();
  }
  to += '\n';
}

/// Appends a name and its description, whose lines begin at `column`.
void append_row(string& to, const string& name, const string& text,
                std::size_t column) {
  const bool fits = name.size() + 2 <= column;
  to +=
    fits ? name + string(column - name.size(), ' ') : name + '\n' + string(column, ' ');
  append_words(to, text, column);
}

/// "-h, --help", or "--layers N" with the type of the value.
/// \param with_aliases true: all names; false: the first name
string names_of(const CLI::Option& option, bool with_aliases) {
  string result;
  const auto add = [&](const char* dashes, const string& name) {
    result += (result.empty() ? "" : ", ") + string{dashes} + name;
  };
  for (const auto& name : option.get_snames())
    add("-", name);
  for (const auto& name : option.get_lnames())
    if (with_aliases || result.empty())
      add("--", name);
  if (option.get_positional())
    result = option.get_name(true);
  else if (option.get_expected_max() > 0) {
    const auto type = option.get_type_name();
    const bool is_whole = type == "INT" || type == "UINT";
    result += is_whole ? " N" : type == "FLOAT" ? " X" : " " + type;
  }
  return result;
}

/// The sentence about the default value; empty if there is none.
string default_of(const CLI::Option& option, const string& description) {
  auto value = option.get_default_str();
  if (value.size() > 1 && value.front() == '[') // of a list
    value = value.substr(1, value.size() - 2);
  return value.empty() || option.get_expected_max() == 0
             || description.find("Default: ") != string::npos
           ? ""
           : " Default: " + value + ".";
}

/// The first sentence of a paragraph, and the sentence about the default value.
string shortened(const string& paragraph) {
  const auto end = paragraph.find(". ");
  const auto usual = paragraph.find(" Default: ");
  auto result = paragraph.substr(0, end == string::npos ? end : end + 1);
  if (usual != string::npos && usual >= result.size())
    result += paragraph.substr(usual, paragraph.find(". ", usual) - usual);
  return result.ends_with('.') ? result : result + '.';
}

/// Appends an option; without `whole` only as much as fits on about one line.
void append_option(string& to, const CLI::Option& option, bool whole) {
  const auto description = option.get_description();
  const auto end = std::min(description.find('\n'), description.size());
  const auto first = description.substr(0, end) + default_of(option, description);
  append_row(to, "  " + names_of(option, whole), whole ? first : shortened(first),
             description_column);
  if (whole && end < description.size())
    to += wrapped(description.substr(end + 1), table_indent);
}

class help_text : public CLI::FormatterBase {
public:
  string make_help(const CLI::App* app, string name,
                   CLI::AppFormatMode mode) const override {
    const auto groups = app->get_groups();
    const bool has_groups = std::ranges::any_of(groups, [](const string& group) {
      return !group.empty() && group != general && group != ungrouped;
    });
    auto result = wrapped(app->get_description()) + "\nUsage: " + name + " [OPTIONS]";
    string positionals;
    for (const auto* const option : app->get_options())
      if (option->get_positional()) {
        const bool several = option->get_items_expected_max() > 1;
        result += " " + option->get_name(true) + (several ? "..." : "");
        append_option(positionals, *option, true);
      }
    result += "\n\n" + positionals + (positionals.empty() ? "" : "\n");
    if (has_groups && mode == CLI::AppFormatMode::Normal)
      return result + common(*app) + "\nAll options, with all their values: " + name
             + " --help-all\n";
    for (const auto& group : groups)
      if (group != general)
        append_group(result, *app, group);
    append_group(result, *app, general);
    return result + wrapped(app->get_footer());
  }

private:
  static string common(const CLI::App& app) {
    string result = "Most used options:\n";
    for (const auto& name : split(common_names, ' ')) {
      const auto* const option = app.get_option_no_throw(name);
      if (option != nullptr && !option->get_group().starts_with("Experts"))
        append_option(result, *option, false);
    }
    return result;
  }

  static void append_group(string& to, const CLI::App& app, const string& group) {
    string options;
    for (const auto* const option : app.get_options())
      if (option->get_group() == group && option->nonpositional())
        append_option(options, *option, true);
    if (!options.empty())
      to += group + ":\n" + options + '\n';
  }
};

} // namespace

void add_help(CLI::App& app) {
  app.formatter(std::make_shared<help_text>());
  app.set_help_flag("-h,--help", "The most used options.")->group(general);
  app.set_help_all_flag("--help-all", "All options, with all their values.")
    ->group(general);
  app
    .set_version_flag("--version", build_info,
                      "Version of troupe, its compiler and its libraries.")
    ->group(general);
}

std::string wrapped(const std::string& text, std::size_t indent) {
  const auto lines = split(text, '\n');
  const auto tag_of = [&](const string& line) {
    return string(indent, ' ') + line.substr(0, line.find('\t'));
  };
  string result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto tab = lines[i].find('\t');
    if (tab == string::npos) {
      const auto blanks = std::min(lines[i].find_first_not_of(' '), lines[i].size());
      result += string(lines[i].empty() ? 0 : indent + blanks, ' ');
      append_words(result, lines[i], indent + blanks);
      continue;
    }
    std::size_t column = 0, end = i;
    for (; end < lines.size() && lines[end].find('\t') != string::npos; ++end)
      column = std::max(column, tag_of(lines[end]).size() + 2);
    for (; i < end; ++i)
      append_row(result, tag_of(lines[i]), lines[i].substr(lines[i].find('\t') + 1),
                 column);
    --i;
  }
  return result;
}

} // namespace troupe
