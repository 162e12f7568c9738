// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/progress_notice.hpp"

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fcntl.h>
#include <sys/time.h>

namespace troupe::patience_test {

namespace {

bool timer_runs() {
  itimerval left{};
  getitimer(ITIMER_REAL, &left);
  return left.it_value.tv_sec > 0 || left.it_value.tv_usec > 0;
}

} // namespace

TEST_CASE("who sets up for long says so, and nothing after that", "[patience]") {
  const temporary_folder folder;
  const auto file = folder.path() / "err";
  const int standard_error = dup(STDERR_FILENO);
  const int to = open(file.c_str(), O_CREAT | O_WRONLY, 0600);
  dup2(to, STDERR_FILENO);
  bool runs_while_it_lives = false;
  {
    const progress_notice asked{"train: setting up"};
    runs_while_it_lives = timer_runs();
    std::raise(SIGALRM); // as the timer would
    std::raise(SIGALRM);
  }
  {
    const progress_notice silent{""};
    CHECK_FALSE(timer_runs());
  }
  dup2(standard_error, STDERR_FILENO);
  close(to);
  close(standard_error);
  CHECK(content_of(file) == "train: setting up\ntrain: setting up\n");
  CHECK(runs_while_it_lives);
  CHECK_FALSE(timer_runs());
  CHECK(std::signal(SIGALRM, SIG_DFL) == SIG_DFL);
}

} // namespace troupe::patience_test
