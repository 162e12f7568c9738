// compare: trains the same model under several schedules and shows them side by side
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/session.hpp"

using namespace troupe;

int main(int argc, char** argv) {
  const program_info program{
    .name = "compare",
    .description = "Comparison of schedules, under which the same model learns the "
                   "same data. Prints a table of speed, memory, staleness and loss.",
    .distributes = true,
    .defaults = {.output = {.new_report = "runs/compare"}},
  };
  return run_program(program, argc, argv,
                     [](const options& o) { return run_session(o); });
}
