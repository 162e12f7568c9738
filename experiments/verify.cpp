// verify: proves schedules right: the plain loop, the replay of the record, the formula

#include "experiments/session/session.hpp"
#include "experiments/session/verification.hpp"
#include "experiments/session/verified_catalog.hpp"

#include <iostream>

using namespace troupe;

namespace {

int run(const options& o) {
  verified_runs all;
  for (const auto& one : o.output.all ? verified_catalog(o) : std::vector{o}) {
    const auto some = verify(one);
    if (!some)
      return 2;
    all.runs += some->runs;
    all.failures += some->failures;
    if (interruption())
      return 130;
  }
  if (!o.output.quiet)
    std::cout << all.runs << " runs, " << all.failures << " that fail\n";
  return all.failures == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  return run_program(about_verify(), argc, argv, run);
}
