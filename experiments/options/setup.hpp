// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "actors/run/perform.hpp"
#include "experiments/options/options.hpp"
#include "models/evaluation.hpp"

#include <tl/expected.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One run that a user asked for.
struct run_request {
  std::string text; ///< The schedule as typed: "ampnet:max_active_keys=8,lr=0.01".
  run_plan plan;
  /// Parameters of the schedule and of its optimizer in `text`, by name.
  std::map<std::string, std::string> parameters;
};

/// A schedule of `all` that cannot run, with the reason.
struct left_out_run {
  std::string text;
  std::string why;
};

/// The runs of a program, and everything that the runs share.
struct setup {
  model_options model;
  /// Description of the data; empty in a simulation, and if no step is left.
  std::string data;
  /// Lowest loss that a model can have on the data, in nats; absent if unknown.
  std::optional<double> loss_floor;
  bool evaluates_training_data = false; ///< True if training sees held-out samples too.
  std::vector<run_request> runs;
  std::vector<left_out_run> left_out; ///< Schedules of `all` that do not fit.
  std::string checkpoint; ///< Checkpoint from which runs resume; empty: none.
  /// With --resume: the start of the runs in words, also if `auto` found no checkpoint.
  /// Empty without --resume, and if no step is left.
  std::string start_description;
  /// With --resume auto: the sentence that no step is left; `runs` is then empty. Else
  /// empty.
  std::string completed;
  /// Facts of the training of `checkpoint`; absent if the checkpoint records none.
  std::optional<training_facts> resumed_training;
  std::vector<std::string> passed_over; ///< Reasons why newer checkpoints were skipped.
  /// Sentences about initial weights, and about a checkpoint's bf16 products.
  std::vector<std::string> notes;
  /// The costs of virtual time in words, for people; empty in real time.
  std::string rates;
};

/// One line with the schedules of `all` that do not run, and the reasons; empty if all
/// of them run.
std::string left_out_line(const setup& shared);

/// Sets up the runs that options ask for. The error is one sentence with the mistake
/// and the allowed values.
tl::expected<setup, std::string> set_up(const options& o);

/// Sets up runs of which other processes perform some ranks. The result is as for
/// set_up().
/// \param local_ranks ranks of this process; absent: all ranks; empty: none
tl::expected<setup, std::string>
set_up_part(const options& o, const std::optional<std::vector<int>>& local_ranks);

/// Sets up the part of a run on a node. The result is as for set_up().
/// \param local_ranks ranks of this process; absent: all ranks; empty: none
/// \param within folder that must hold the data (open_data.hpp); empty: any folder
tl::expected<setup, std::string>
set_up_part(const options& o, const std::optional<std::vector<int>>& local_ranks,
            const std::filesystem::path& within);

} // namespace troupe
