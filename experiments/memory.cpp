// memory: measures memory and messages of each rank under each level of ZeRO
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/performed_programs.hpp"

int main(int argc, char** argv) {
  return troupe::run_performed(troupe::memory_program(), argc, argv);
}
