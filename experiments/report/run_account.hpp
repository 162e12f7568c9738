// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/difference.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/report/loss_curve.hpp"
#include "experiments/report/loss_history.hpp"
#include "experiments/report/run_counts.hpp"
#include "models/evaluation.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// A run that has ended, with the numbers that tables, pages and results.json show.

namespace troupe {

/// The source of a run's times. `measured`: the wall clock, with a thread for each
/// rank. `modelled`: computed from the lengths of the actions. `shared`: the wall
/// clock, while ranks took turns on fewer threads. `virtual_time`: the virtual clock.
enum class timing_kind : std::uint8_t { measured, modelled, shared, virtual_time };

std::string name_of(timing_kind timing);

std::string name_of(ending outcome);

/// "holds", "fails" or "no formula".
std::string name_of(verdict says);

/// A run and the results of its proofs.
struct verification {
  ending outcome;
  std::string failure; ///< Failure of the run itself, in words; empty: none.
  std::vector<proof> proofs;
  int steps; ///< Steps of the run.

  /// True if the run has finished and no proof fails.
  bool holds() const;

  /// "plain loop, replay, formula hold over 2 steps", or the proofs that fail. A proof
  /// without a published formula is named too, unless a proof fails. If the run has not
  /// finished: "not proved over 2 steps", and the first line of the failure.
  std::string sentence() const;
};

/// A run that has ended, with all numbers that are reported.
struct run_account {
  const run_request* request; ///< Request of the last start; outlives this object.
  run_result result;
  bool modelled = false;          ///< True if times are computed for one device a rank.
  std::optional<score> evaluated; ///< Score at the end; absent: none.
  /// Scores at intervals of --evaluate-every; a score at the end is here too if due.
  std::vector<std::pair<total_steps, score>> evaluations;
  std::optional<verification> proved; ///< Proof of the first steps; absent: none.
  /// Losses over all starts of a run that started again after it lost nodes; absent:
  /// there was one start.
  std::optional<loss_history::series> losses_of_all_starts;
  bool evaluated_to_end = true; ///< False if the user ended the last evaluation.

  /// How the run ended. A run whose last evaluation did not end counts as interrupted.
  ending outcome() const;

  /// The source of the run's times.
  timing_kind timing() const;

  /// Losses over all starts in this command, at samples counted since the training's
  /// first start.
  loss_history::series losses() const;

  /// losses() with the times of the last start; without times if there were several
  /// starts.
  loss_curve curve() const;

  /// Number of samples of all starts in this command, up to the newest known loss.
  /// Updates cover these samples.
  std::int64_t samples() const;

  bool virtual_time() const {
    return request->plan.machine.clock == clock_kind::virtual_time;
  }

  /// Samples a second of the last start, by the wall clock or by the virtual clock.
  /// Absent in a simulation, or if the start took no time.
  std::optional<double> samples_per_second() const;
  /// Tokens a second of the last start. Absent also if the model reads no tokens.
  std::optional<double> tokens_per_second() const;
};

/// The seconds after which the run with the shortest time had its last loss, by the
/// clock of the runs. Absent if no run finished with known times.
std::optional<double> shortest_time(const std::vector<run_account>& runs);

/// Samples over which losses are averaged before they are compared with a target.
/// \pre the run trains
std::int64_t window_of(const run_account& run);

/// One sentence about missing losses of a run; empty if all losses are there, or if the
/// run has failed.
std::string missing_losses(const run_account& run);

} // namespace troupe
