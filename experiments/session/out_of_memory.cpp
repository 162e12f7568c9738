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

/// Called by `new` on any thread, and allocates nothing. Only the first thread prints
/// the sentence.
[[noreturn]] void end() {
  static std::atomic_flag said;
  while (said.test_and_set())
    pause();
  [[maybe_unused]] const auto written =
    write(STDERR_FILENO, sentence, std::strlen(sentence));
  std::_Exit(1);
}

/// Runs before the constructors of libraries, which allocate before main().
[[gnu::constructor(101)]] void be_ready() {
  std::set_new_handler(end);
}

} // namespace

void end_when_out_of_memory(const std::string& program) {
  std::snprintf(sentence, sizeof sentence, "%s: out of memory; choose smaller sizes\n",
                program.c_str());
}

} // namespace troupe
