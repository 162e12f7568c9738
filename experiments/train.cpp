// train: trains one model under one schedule; evaluates, saves, resumes
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/session.hpp"

using namespace troupe;

int main(int argc, char** argv) {
  const program_info program{
    .name = "train",
    .description = "Training of any model on any data under one schedule.",
    .resumes = true,
    .distributes = true,
    .defaults = {.schedules = {.names = {"1f1b"}}},
  };
  return run_program(program, argc, argv,
                     [](const options& o) { return run_session(o); });
}
