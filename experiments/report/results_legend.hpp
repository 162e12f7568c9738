// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/report/results.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One line: the model and the data, and the numbers of stages, shards, replicas,
/// microbatches and steps. The numbers are those of the first run in `shared`.
/// \pre the runs train, and there is a run
std::string description_of(const setup& shared);

/// The tensor shards, data replicas and spread experts of a run, each with a comma
/// behind: "2 data replicas by ring, "; empty for a pipeline alone.
std::string division_of(const run_plan& plan);

/// The losses in a table of results.
struct shown_losses {
  /// Number of last samples over which a loss is the mean; 0: there are no losses.
  std::int64_t samples;
  std::optional<double> shortest; ///< Seconds at which losses are compared.
  std::optional<double> target;   ///< The loss of --target-loss.
};

/// The text below a table of results: the meaning of the table's columns and words, and
/// facts that have no column.
/// \pre there are runs in `shared`
std::string results_legend(const setup& shared, const std::vector<run_account>& runs,
                           const shown_losses& losses);

} // namespace troupe
