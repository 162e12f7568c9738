// train: trains one model under one schedule; evaluates, saves, resumes
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/programs.hpp"
#include "experiments/session/session.hpp"

using namespace troupe;

int main(int argc, char** argv) {
  return run_program(session_program("train"), argc, argv,
                     [](const options& o) { return run_session(o); });
}
