// evaluate: computes loss, perplexity and accuracy of saved weights on held-out data
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/performed_programs.hpp"

int main(int argc, char** argv) {
  return troupe::run_performed(troupe::evaluate_program(), argc, argv);
}
