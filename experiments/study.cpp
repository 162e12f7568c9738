// study: runs schedules for every combination of options and seeds, and compares them
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/study/study.hpp"

#include "experiments/session/program.hpp"

using namespace troupe;

int main(int argc, char** argv) {
  return run_guarded("study", [&] { return run_study(argc, argv); });
}
