// simulate: runs schedules in virtual time without arithmetic: any size, any costs
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/programs.hpp"
#include "experiments/session/session.hpp"

using namespace troupe;

int main(int argc, char** argv) {
  return run_program(session_program("simulate"), argc, argv,
                     [](const options& o) { return run_session(o); });
}
