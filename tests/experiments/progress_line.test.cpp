// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/progress_line.hpp"

#include "tests/experiments/run_program.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

namespace troupe::progress_line_test {

namespace {

/// Returns the text that a function writes to standard error, a terminal with so many
/// columns.
std::string shown_on_terminal(unsigned short columns,
                              const std::function<void()>& what) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const int screen = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ioctl(terminal, TIOCSWINSZ, &size);
  const int standard_error = dup(STDERR_FILENO);
  dup2(screen, STDERR_FILENO);
  what();
  dup2(standard_error, STDERR_FILENO);
  close(standard_error);
  close(screen);
  std::string text;
  char some[4096];
  for (ssize_t count = 0;
       (count = read(terminal, some, sizeof some)) > 0;) // to the end
    text.append(some, static_cast<std::size_t>(count));
  close(terminal);
  return text;
}

} // namespace

TEST_CASE("a simulation's progress ends with all its microbatches", "[progress]") {
  typed_options o;
  o.schedules.steps = 2;
  o.cost = "F=1,B=2,latency=0.1";
  // Every step has all of --microbatches; each tensor shard computes each microbatch.
  const auto [mesh, shards] =
    GENERATE(table<std::string, int>({{"", 1},
                                      {"data=2", 1},
                                      {"data=2,tensor=3", 3},
                                      {"pipe=1", 1},
                                      {"data=4,expert=2", 1}}));
  o.mesh.axes = mesh;
  auto shared = tiny::set_up_simulation(o);
  for (auto& run : shared->runs) {
    const auto done = count_microbatches(run.plan);
    perform(run.plan);
    INFO(mesh << " " << run.text);
    CHECK(std::abs(*done - 2.0 * 8 * shards) < 1e-9);
  }
}

TEST_CASE("a pace is of the last ten seconds, and of what began again anew",
          "[progress]") {
  throughput p;
  CHECK_FALSE(p.rate());
  p.add(100, 0);
  p.add(100.3, 60);
  CHECK_FALSE(p.rate()); // unknown yet
  CHECK_FALSE(p.left(1000));
  p.add(101, 200);
  CHECK(p.rate() == 200.0);
  CHECK(p.left(1000) == 4.0);
  CHECK(p.left(100) == 0.0);
  for (int i = 1; i <= 300; ++i) // from here on 50 a second, for 15 s
    p.add(101 + i * 0.05, 200 + i * 2.5);
  CHECK(std::abs(*p.rate() - 50) < 0.5);
  p.add(117, 20);
  CHECK_FALSE(p.rate());
  p.add(119, 20);
  CHECK(p.rate() == 0.0);
  CHECK_FALSE(p.left(1000)); // never, at this rate
  p.add(121, 40);
  CHECK(p.rate() == 5.0);
}

TEST_CASE("a pace of long steps counts those that are finished", "[progress]") {
  throughput p;
  for (int i = 0; i <= 600; ++i) // a step of 16 samples in 30 s
    p.add(0.1 * i, 16.0 * (i / 300));
  CHECK(std::abs(*p.rate() - 16 / 30.0) < 1e-9);
  for (int i = 601; i < 900; ++i) {
    p.add(0.1 * i, 32);
    CHECK(std::abs(*p.rate() - 16 / 30.0) < 1e-9);
  }
}

TEST_CASE("a time to wait is told as people do", "[progress]") {
  const auto [seconds, text] =
    GENERATE(table<double, std::string>({{0, "0 s left"},
                                         {0.2, "1 s left"},
                                         {12, "12 s left"},
                                         {99, "99 s left"},
                                         {99.5, "2 min left"},
                                         {180, "3 min left"},
                                         {99.4 * 60, "99 min left"},
                                         {125 * 60, "2 h 5 min left"},
                                         {47.5 * 3600, "47 h 30 min left"},
                                         {72.0 * 3600, "3 days left"}}));
  CHECK(time_left(seconds) == text);
}

TEST_CASE("a line of progress is not written twice in a row", "[progress]") {
  const temporary_folder folder;
  const auto ran = run_program_in(
    folder,
    "train --steps 1 --stages 2 --layers 2 --d-model 8 --heads 2 --seq 4 --batch 8");
  REQUIRE(ran.exit_code == 0);
  const std::string line = "8 of 8 samples";
  const auto first = ran.err.find(line);
  CHECK(first != std::string::npos);
  CHECK(ran.err.find(line, first + 1) == std::string::npos);
}

TEST_CASE("a rate has three digits", "[progress]") {
  const auto [rate, text] = GENERATE(table<double, std::string>({{0, "0.00"},
                                                                 {0.524, "0.52"},
                                                                 {9.999, "10.0"},
                                                                 {28.44, "28.4"},
                                                                 {99.96, "100"},
                                                                 {284.4, "284"},
                                                                 {12000, "12000"}}));
  CHECK(rate_text(rate) == text);
}

TEST_CASE("a line loses its last parts where it is too long", "[progress]") {
  const std::vector<std::string> parts{"1f1b 3 of 4", ", loss 1.5", ", 7/s"};
  CHECK(fitting(parts, std::string::npos) == "1f1b 3 of 4, loss 1.5, 7/s");
  CHECK(fitting(parts, 26) == "1f1b 3 of 4, loss 1.5, 7/s");
  CHECK(fitting(parts, 25) == "1f1b 3 of 4, loss 1.5");
  CHECK(fitting(parts, 20) == "1f1b 3 of 4");
  CHECK(fitting(parts, 6) == "1f1b 3");
}

TEST_CASE("on a terminal a line changes in place and is never broken", "[progress]") {
  auto o = tiny::options_of("1f1b");
  o.schedules.steps = 100;
  const auto shared = tiny::set_up_training(o);
  const auto& plan = shared->runs.front().plan;
  const auto shown = shown_on_terminal(40, [&] {
    progress_line line{plan, false};
    line.show({.samples = 1000, .loss = 1.25}, false);
    line.show({.samples = 1010, .loss = 1.25}, false); // too soon for eyes
    line.show_evaluation({70}, {.loss = 1.5, .accuracy = {}});
    line.show({.samples = 1600, .loss = 1.125}, true);
    line.end();
  });
  const std::string first = "1f1b         1000 of 1600 samples";
  CHECK(shown
        == first + "\r" + std::string(first.size(), ' ') + "\r"
             + "1f1b         step 70: evaluated loss 1.5000\r\n"
               "1f1b         1600 of 1600 samples\r\n");
  CHECK(shown_on_terminal(60,
                          [&] {
                            progress_line line{plan, false};
                            line.show({.samples = 1000, .loss = 1.25}, false);
                            line.end();
                          })
        == first + ", loss 1.2500\r" + std::string(first.size() + 13, ' ') + "\r");
}

} // namespace troupe::progress_line_test
