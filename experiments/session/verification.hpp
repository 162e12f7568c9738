#pragma once

#include "actors/proof/proof.hpp"
#include "experiments/options/options.hpp"
#include "experiments/options/setup.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

class node_runs;

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
/// \param performs its runs; null: they are of this process
/// \pre can_be_replayed(request.plan) \throws what node_runs::perform does
verification verify(const run_request& request, node_runs* performs = nullptr);

/// Runs, and those of them that have a proof that fails.
struct verified_runs {
  int runs = 0;
  int failures = 0;
};

/// Verifies what the options say, and prints each proof unless told to be quiet.
/// Absent, after a sentence about it, if the options are wrong.
std::optional<verified_runs> verify(const options& o);

} // namespace troupe
