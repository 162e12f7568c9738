// Runs at random: whatever goes together has to be proved right, and what does not is
// refused in a sentence. Any number of them from any seed: TROUPE_RANDOM=5000,7

#include "experiments/session/program.hpp"
#include "experiments/session/verification.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/files/schedule_file.hpp"
#include "tests/random/configuration.hpp"

#include <catch2/catch_test_macros.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace troupe;

namespace {

#ifdef TROUPE_SANITIZED
constexpr std::uint64_t usual_number = 12;
#else
constexpr std::uint64_t usual_number = 150;
#endif

/// What is said on standard error while it lives.
class heard {
public:
  heard() : before_(std::cerr.rdbuf(text_.rdbuf())) {
    // nop
  }
  ~heard() { std::cerr.rdbuf(before_); }
  heard(const heard&) = delete;
  heard& operator=(const heard&) = delete;

  std::string text() const { return text_.str(); }

private:
  std::ostringstream text_;
  std::streambuf* before_;
};

struct outcome {
  int exit_code;
  std::string said;
};

/// What the program verify does with these words.
outcome verified(const std::vector<std::string>& words) {
  std::vector<const char*> arguments{"verify"};
  for (const auto& word : words)
    arguments.push_back(word.c_str());
  const heard errors;
  const int exit_code = run_program(about_verify(), static_cast<int>(arguments.size()),
                                    arguments.data(), [](const options& o) {
                                      const auto count = verify(o);
                                      return !count ? 2 : count->failures > 0 ? 1 : 0;
                                    });
  return {exit_code, errors.text()};
}

bool is_one_sentence(const std::string& text) {
  return text.starts_with("verify: ") && text.ends_with('\n')
         && std::ranges::count(text, '\n') == 1;
}

std::string command_of(const std::vector<std::string>& words) {
  std::string result = "./troupe verify";
  for (const auto& word : words)
    result += " " + word;
  return result;
}

/// The same run by a file that says what the schedule does; nothing of a local rule.
std::vector<std::string> by_file(const random_configuration& all,
                                 const std::string& path) {
  const auto sch = find_schedule(all.schedule(), all.parameters());
  REQUIRE(sch);
  auto words = all.words();
  const shape dims{stages_on(sch->where, all.ranks()), all.microbatches(), all.steps()};
  if (sch->local_rule())
    return {};
  std::ofstream{path} << write_schedule(*sch, dims);
  auto& typed = *std::next(std::ranges::find(words, "--schedule"));
  typed = "file:" + path + (typed.ends_with("clip=stage") ? ",clip=stage" : "");
  return words;
}

/// "NUMBER" or "NUMBER,SEED".
void read_wish(std::uint64_t& number, std::uint64_t& seed) {
  if (const auto* const wish = std::getenv("TROUPE_RANDOM")) {
    char* end = nullptr;
    number = std::strtoull(wish, &end, 10);
    if (*end == ',')
      seed = std::strtoull(end + 1, &end, 10);
    REQUIRE((number > 0 && *end == '\0'));
  }
}

} // namespace

TEST_CASE("runs at random are proved right, or refused in a sentence", "[random]") {
  std::uint64_t number = usual_number, seed = 1, refused = 0;
  read_wish(number, seed);
  const auto file = (std::filesystem::temp_directory_path()
                     / ("troupe-random-" + std::to_string(::getpid()) + ".csv"))
                      .string();
  for (std::uint64_t i = 0; i < number; ++i) {
    const random_configuration all{seed, i};
    const auto words = all.words();
    const auto [exit_code, said] = verified(words);
    const bool is_refused = exit_code == 2;
    refused += is_refused;
    INFO(command_of(words) << "\n" << said);
    CHECK((is_refused ? is_one_sentence(said) : exit_code == 0));
    if (is_refused || i % 4 != 0)
      continue;
    if (const auto again = by_file(all, file); !again.empty()) {
      const auto outcome = verified(again);
      INFO(command_of(again) << "\n" << outcome.said);
      CHECK(outcome.exit_code == 0);
    }
  }
  std::filesystem::remove(file);
  INFO(refused << " of " << number << " were refused");
  CHECK(refused <= number / 10);
}
