// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "actors/run/company.hpp"
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
  std::string text; ///< As typed: "ampnet:max_active_keys=8,lr=0.01".
  run_plan plan;
  /// The schedule's parameters and options of its own, as typed.
  std::map<std::string, std::string> parameters;
};

/// A schedule that was named and does not run, and why.
struct left_out_run {
  std::string text;
  std::string why;
};

/// Everything the programs share between runs.
struct setup {
  model_options model;
  std::string data; ///< Its description.
  std::optional<double> loss_floor;
  bool evaluates_training_data = false; ///< As the data set says.
  std::vector<run_request> runs;
  std::vector<left_out_run> left_out; ///< Of `all`: what does not fit.
  std::string checkpoint;             ///< What runs go on from; empty: nothing.
  std::string beginning; ///< That in words, also where `auto` found none; else empty.
  /// Of --resume auto: why no step is left, in words. There are no runs then.
  std::string completed;
  std::optional<training_facts> before; ///< Of that, if it keeps them.
  std::vector<std::string> passed_over; ///< Why newer checkpoints are not that.
  std::vector<std::string> notes;       ///< On weights and data, a sentence each.
  std::string rates; ///< What virtual time counts, for people; empty in real time.
};

/// What `all` does not run, and why, in one line; empty if it runs everything.
std::string left_out_line(const setup& shared);

/// The runs that options ask for. On error says what is wrong, and what is allowed.
tl::expected<setup, std::string> set_up(const options& o);

/// The same where other processes play some ranks. \param here those of this one;
/// absent: all
tl::expected<setup, std::string>
set_up_part(const options& o, const std::optional<std::vector<int>>& here);

/// The same on a node. \param within folder that must hold the data (open_data.hpp)
tl::expected<setup, std::string>
set_up_part(const options& o, const std::optional<std::vector<int>>& here,
            const std::filesystem::path& within);

} // namespace troupe
