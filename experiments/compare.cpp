// compare: trains the same model under several schedules and shows them side by side
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/programs.hpp"
#include "experiments/session/session.hpp"

using namespace troupe;

int main(int argc, char** argv) {
  return run_program(session_program("compare"), argc, argv,
                     [](const options& o) { return run_session(o); });
}
