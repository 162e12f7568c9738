// verify: proves schedules right: the plain loop, the replay of the record, the formula

#include "experiments/support/session.hpp"
#include "experiments/support/verification.hpp"
#include "experiments/support/verified_catalog.hpp"

#include <iostream>

using namespace troupe;

namespace {

int run(const options& o) {
  verified_runs count;
  for (const auto& one : o.all ? verified_catalog(o) : std::vector{o}) {
    if (!verify(one, count))
      return 2;
    if (interruption())
      return 130;
  }
  if (!o.quiet)
    std::cout << count.runs << " runs, " << count.failures
              << " with a proof that fails\n";
  return count.failures == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  return run_program(about_verify(), argc, argv, run);
}
