// verify: proves schedules right, by a plain loop, a replay of the record and formulas
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/session.hpp"
#include "experiments/session/verification.hpp"
#include "experiments/session/verified_catalog.hpp"

#include <iostream>

using namespace troupe;

namespace {

int run(const options& o) {
  verified_runs total;
  std::size_t left_out = 0;
  for (const auto& variant :
       o.output.whole_catalog ? verified_catalog(o) : std::vector{o}) {
    if (o.output.whole_catalog && !always_holds(variant)) {
      left_out += variant.schedules.chosen.size();
      continue;
    }
    const auto verified = verify(variant);
    if (!verified)
      return 2;
    total.runs += verified->runs;
    total.failures += verified->failures;
    if (interruption())
      return 130;
  }
  if (!o.output.quiet)
    std::cout << total.runs << " runs, " << total.failures << " that fail\n";
  if (left_out > 0)
    std::cerr
      << "verify: " << left_out
      << " runs of tensor shards left out: tensor shards sum in another order, and "
         "in bf16 each later layer's rounding enlarges the difference, "
         "sometimes beyond the bound of a proof\n";
  return total.failures == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  return run_program(verify_program(), argc, argv, run);
}
