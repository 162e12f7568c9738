// simulate: runs schedules in virtual time without arithmetic: any size, any costs
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/session.hpp"

using namespace troupe;

int main(int argc, char** argv) {
  const program_info program{
    .name = "simulate",
    .description =
      "Simulation of schedules in virtual time, without arithmetic. Asynchronous "
      "schedules run the microbatches of all steps without a flush between steps.",
    .trains = false,
    .draws = true,
    .defaults = {.schedules = {.steps = 1}, .cost = "F=1,B=2"},
  };
  return run_program(program, argc, argv,
                     [](const options& o) { return run_session(o); });
}
