// SPDX-License-Identifier: BSD-3-Clause
// The words of --help.

#include "experiments/options/option_list.hpp"
#include "experiments/options/options.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace troupe::help_test {

namespace {

/// Sentences end with a full stop and a blank.
std::vector<std::string> sentences_of(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(". ", begin), text.size());
    result.push_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return result;
}

auto words_of(const std::string& sentence) {
  std::istringstream stream{sentence};
  return std::distance(std::istream_iterator<std::string>{stream}, {});
}

} // namespace

TEST_CASE("help says every option in whole sentences of at most 25 words", "[help]") {
  const program_about runs{.draws = true, .has_all = true},
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
      if (option->get_name() == "--help") // CLI11's own, which programs replace
        continue;
      INFO(option->get_name() << ": " << text);
      CHECK(text.ends_with('.'));
      for (const auto& sentence : sentences_of(text)) {
        CHECK(std::isupper(static_cast<unsigned char>(sentence.front())) != 0);
        CHECK(words_of(sentence) <= 25);
      }
    }
  }
}

} // namespace troupe::help_test
