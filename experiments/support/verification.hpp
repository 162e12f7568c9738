#pragma once

#include "actors/proof/proof.hpp"
#include "experiments/support/options.hpp"
#include "experiments/support/setup.hpp"

#include <string>
#include <vector>

namespace troupe {

/// What the program verify is, also for tests that call it in their own process.
program_about about_verify();

/// A run and what its proofs say.
struct verification {
  ending how;
  std::string failure; ///< Of the run itself.
  std::vector<proof> proofs;

  bool holds() const;
};

/// Runs a request and proves it, by the published rule that its text calls for. A run
/// whose sums no plain loop has is run again, and has to give the same bits.
/// \pre can_be_replayed(request.plan)
verification verify(const run_request& request);

/// Verifies what the options say, prints each proof unless told to be quiet, and counts
/// runs and those of them that do not hold. Returns false, after a sentence about it,
/// if the options are wrong.
struct verified_runs {
  int runs = 0;
  int failures = 0;
};
bool verify(const options& o, verified_runs& count);

} // namespace troupe
