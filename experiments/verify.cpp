// verify: proves schedules right, by a plain loop, a replay of the record and formulas
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/session.hpp"
#include "experiments/session/verification.hpp"
#include "experiments/session/verified_catalog.hpp"

#include <iostream>

using namespace troupe;

namespace {

int run(const options& o) {
  verified_runs all;
  std::size_t left_out = 0;
  for (const auto& one : o.output.all ? verified_catalog(o) : std::vector{o}) {
    if (o.output.all && !always_holds(one)) {
      left_out += one.schedules.chosen.size();
      continue;
    }
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
  if (left_out > 0)
    std::cerr << "verify: " << left_out
              << " runs of tensor shards left out: they sum in another order, and in "
                 "bf16 every layer behind rounds that apart, now and then further than "
                 "a proof may allow\n";
  return all.failures == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  return run_program(about_verify(), argc, argv, run);
}
