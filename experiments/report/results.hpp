// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/difference.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/report/loss_history.hpp"
#include "experiments/report/run_counts.hpp"
#include "models/evaluation.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// What a run's times are: those of the wall, with a thread for each rank; laid out
/// from the lengths of its actions; those of ranks that took turns on fewer threads; or
/// those of the virtual clock.
enum class timing_kind : std::uint8_t { measured, modelled, shared, virtual_time };

std::string name_of(timing_kind how);

std::string name_of(ending how);

/// "holds", "fails" or "no formula".
std::string name_of(verdict says);

/// A run and what its proofs say.
struct verification {
  ending how;
  std::string failure; ///< Of the run itself.
  std::vector<proof> proofs;
  int steps; ///< Of the run.

  bool holds() const;

  /// "plain loop, replay and formula hold over 2 steps", or what fails.
  std::string sentence() const;
};

/// A run that is over, as it is told.
struct run_account {
  const run_request* request; ///< Of the last start.
  run_result result;
  bool modelled = false;          ///< Its times are laid out, one device a rank.
  std::optional<score> evaluated; ///< In the end.
  std::vector<std::pair<total_steps, score>> evaluations; ///< On the way.
  std::optional<verification> proved;                     ///< Of its first steps.
  /// Losses over all starts of a run that lost nodes; absent: it was started once.
  std::optional<loss_history::series> losses_of_all_starts;
  bool evaluated_to_end = true; ///< False: the user ended the last evaluation.

  /// How it ended: one whose last evaluation did not end counts as interrupted.
  ending how() const;

  timing_kind timing() const;

  /// Losses over all starts in this command, at samples since the first start of all.
  loss_history::series losses() const;

  /// Samples of all starts in this command: those that updates cover.
  std::int64_t samples() const;

  bool virtual_time() const { return request->plan.clock == clock_kind::virtual_time; }

  /// Samples a second of the last start: of wall time, or of the virtual clock's.
  std::optional<double> samples_per_second() const;
  std::optional<double> tokens_per_second() const;
};

/// Says which losses of a run are missing that has not failed; empty if all are there.
std::string missing_losses(const run_account& run);

/// results.json: what ran, and what was left out. \pre there are runs in `shared`
std::string results_json(const options& o, const setup& shared,
                         const std::vector<run_account>& runs);

/// The runs side by side, for people; those that had not begun stand at the end.
std::string results_table(const setup& shared, const std::vector<run_account>& runs);

} // namespace troupe
