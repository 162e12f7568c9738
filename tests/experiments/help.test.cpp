// SPDX-License-Identifier: BSD-3-Clause
// Tests the words and the layout of --help.

#include "experiments/options/help.hpp"

#include "experiments/options/option_list.hpp"
#include "experiments/options/options.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>

namespace troupe::help_test {

namespace {

/// The parts of a text, each ended by a separator.
std::vector<std::string> parts_of(const std::string& text,
                                  const std::string& separator) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    result.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return result;
}

auto words_of(const std::string& sentence) {
  std::istringstream stream{sentence};
  return std::distance(std::istream_iterator<std::string>{stream}, {});
}

} // namespace

TEST_CASE("help says every option in whole sentences of at most 25 words", "[help]") {
  const program_info runs{.draws = true, .has_all = true},
    alone{.trains = false, .draws = true, .has_all = true, .exchanges = true},
    evaluates{.keeps = false, .tells = true, .evaluates = true},
    writes{.keeps = false, .tells = true, .writes = true};
  for (const auto& about : {runs, alone, evaluates, writes}) {
    typed_options place;
    CLI::App app;
    option_list list{app};
    add_options(list, place, about);
    for (const auto* const option : app.get_options()) {
      const auto text = option->get_description();
      if (option->get_name() == "--help") // CLI11's option, which programs replace
        continue;
      INFO(option->get_name() << ": " << text);
      auto lines = parts_of(text, "\n");
      CHECK(lines.front().ends_with('.'));
      for (const auto& sentence : parts_of(lines.front(), ". ")) {
        const auto first = static_cast<unsigned char>(sentence.front());
        CHECK((std::isupper(first) != 0 || sentence.starts_with("--")));
        CHECK(words_of(sentence) <= 25);
      }
      lines.erase(lines.begin());
      for (const auto& line : lines) { // a value and a meaning
        CHECK(std::ranges::count(line, '\t') == 1);
        CHECK_FALSE(line.ends_with('.'));
        CHECK(words_of(line) <= 25);
      }
    }
  }
}

TEST_CASE("a text is broken between words, and rows have a common column", "[help]") {
  const std::string word(30, 'w'), line = word + " " + word + " " + word;
  CHECK(wrapped("a  b") == "a b\n");
  CHECK(wrapped(line + " " + word) == line + "\n" + word + "\n");
  CHECK(wrapped("k\tvalue\nlonger\t" + line, 2)
        == "  k       value\n  longer  " + word + " " + word + "\n          " + word
             + "\n");
  CHECK(wrapped("k\t" + line + " x", 7)
        == "       k  " + word + " " + word + "\n          " + word + " x\n");
}

TEST_CASE("help has the most used options, and all help has all", "[help]") {
  int number = 3;
  bool flag = false;
  CLI::App app{"Program.", "name"};
  option_list list{app};
  add_help(app);
  app.option_defaults()->always_capture_default();
  list.begin_group("First");
  list.add_option("--steps", number, "Batches. More of them. Default: 7.");
  list.begin_group("Second");
  list.add_option("--layers,--blocks", number, "Blocks of it.\n1\tone");
  list.add_flag("--rare", flag, "Rarely used.");
  CHECK(app.help()
        == "Program.\n\nUsage: name [OPTIONS]\n\nMost used options:\n"
           "  --layers N                   Blocks of it. Default: 3.\n"
           "  --steps N                    Batches. Default: 7.\n\n"
           "All options, with all their values: name --help-all\n");
  const auto all = app.help("", CLI::AppFormatMode::All);
  CHECK(all.starts_with(
    "Program.\n\nUsage: name [OPTIONS]\n\nFirst:\n"
    "  --steps N                    Batches. More of them. Default: 7.\n\nSecond:\n"
    "  --layers, --blocks N         Blocks of it. Default: 3.\n"
    "        1  one\n"
    "  --rare                       Rarely used.\n\nGeneral:\n  -h, --help "));
}

} // namespace troupe::help_test
