// SPDX-License-Identifier: BSD-3-Clause
// Random runs. Every valid combination of options must be proved right, and every
// invalid one must be refused with a sentence. The environment sets
// the number of runs and the seed: TROUPE_RANDOM=5000,7

#include "experiments/session/verification.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/files/schedule_file.hpp"
#include "tests/random/configuration.hpp"
#include "tests/random/performed.hpp"
#include "tests/random/wish.hpp"

#include <catch2/catch_test_macros.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace troupe::configurations_test {

namespace {

#ifdef TROUPE_SANITIZED
constexpr std::uint64_t usual_number = 12;
#else
constexpr std::uint64_t usual_number = 100;
#endif

outcome verified(const std::vector<std::string>& words) {
  const auto program = verify_program();
  return performed(program.info, words, [&](const options& o) {
    const auto say = [](const std::string& sentence) {
      std::cerr << "verify: " << sentence << std::endl;
    };
    const auto end = program.perform(o, {.error = say, .note = say});
    if (!end)
      say(end.error());
    return end ? end->exit_code : 2;
  });
}

/// Returns the same run with the schedule in a schedule file; empty for a local rule.
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

} // namespace

TEST_CASE("runs at random are proved right, or refused in a sentence", "[random]") {
  const auto [number, seed] = wished(usual_number);
  std::uint64_t refused = 0;
  const auto file = (std::filesystem::temp_directory_path()
                     / ("troupe-random-" + std::to_string(::getpid()) + ".csv"))
                      .string();
  for (std::uint64_t i = 0; i < number; ++i) {
    const random_configuration all{seed, i};
    const auto words = all.words();
    const auto [exit_code, said] = verified(words);
    const bool is_refused = exit_code == 2;
    refused += is_refused;
    INFO(command_of("verify", words) << "\n" << said);
    CHECK((is_refused ? is_one_sentence("verify", said) : exit_code == 0));
    if (is_refused || i % 4 != 0)
      continue;
    if (const auto again = by_file(all, file); !again.empty()) {
      const auto outcome = verified(again);
      INFO(command_of("verify", again) << "\n" << outcome.said);
      CHECK(outcome.exit_code == 0);
    }
  }
  std::filesystem::remove(file);
  INFO(refused << " of " << number << " were refused");
  CHECK(refused <= number / 10);
}

} // namespace troupe::configurations_test
