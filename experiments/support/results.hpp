#pragma once

#include "experiments/support/setup.hpp"
#include "models/evaluation.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A run that is over, as it is told.
struct run_account {
  const run_request* request;
  run_result result;
  bool modelled = false;          ///< Its times are laid out, one device a rank.
  std::optional<score> evaluated; ///< In the end.
  std::vector<std::pair<int, score>> evaluations; ///< On the way: after so many steps.

  bool virtual_time() const { return request->plan.clock == clock_kind::virtual_time; }

  /// Samples a second: of wall time, or of the virtual clock's.
  std::optional<double> samples_per_second() const;
  std::optional<double> tokens_per_second() const;
};

/// results.json, as DESIGN.md describes it.
std::string results_json(const options& o, const setup& shared,
                         const std::vector<run_account>& runs);

/// The runs side by side, for people.
std::string results_table(const setup& shared, const std::vector<run_account>& runs);

} // namespace troupe
