// verify: proves schedules right, by a plain loop, a replay of the record and formulas
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/performed_programs.hpp"

int main(int argc, char** argv) {
  return troupe::run_performed(troupe::verify_program(), argc, argv);
}
