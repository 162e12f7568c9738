// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/out_of_memory.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace troupe {

namespace {

char sentence[80] = "out of memory\n";

/// Allocates nothing: called by `new`, on any thread. The first one to come speaks.
[[noreturn]] void end() {
  static std::atomic_flag said;
  while (said.test_and_set())
    pause();
  [[maybe_unused]] const auto written =
    write(STDERR_FILENO, sentence, std::strlen(sentence));
  std::_Exit(1);
}

/// Libraries make things before main() does.
[[gnu::constructor(101)]] void be_ready() {
  std::set_new_handler(end);
}

} // namespace

void end_when_out_of_memory(const std::string& program) {
  std::snprintf(sentence, sizeof sentence, "%s: out of memory: choose smaller sizes\n",
                program.c_str());
}

} // namespace troupe
