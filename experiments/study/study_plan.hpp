// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/command_line.hpp"

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// One run of a study: a schedule, a value for each varied option, and a seed.
struct study_run {
  std::string schedule;            ///< As typed: "pipedream:update_every=3".
  std::vector<std::string> values; ///< One for each varied option.
  std::string seed;                ///< Empty in a simulation, or if --vary gives seeds.
  /// The program's bare name, then its options.
  std::vector<std::string> words;
};

/// All runs of a study, in their order. Schedules follow one another, so that slow
/// changes of a machine's speed reach all schedules alike.
struct study_plan {
  std::string program;              ///< "compare" or "simulate".
  std::vector<std::string> command; ///< As typed, with the bare name `study`.
  std::vector<std::string> varied;  ///< Names of options without dashes.
  /// Options with one value in all runs: name without dashes, and value.
  std::vector<std::pair<std::string, std::string>> fixed;
  std::vector<study_run> runs;
};

/// True if the runs differ in seeds that the study gives.
bool has_seeds(const study_plan& plan);

/// True for the programs that a study repeats: compare and simulate.
bool is_program(std::string_view name);

/// The program `study` of a repeated program.
program_info study_of(const program_info& repeated);

/// Combines schedules, values and seeds. The error is one sentence.
/// \param repeated the program of the runs
/// \param command as study_plan::command
/// \pre validation_error(typed.typed.study) is empty
tl::expected<study_plan, std::string> plan_study(const program_info& repeated,
                                                 const typed_words& typed,
                                                 std::vector<std::string> command);

/// The plan as JSON, and back.
/// \throws std::exception if the text is no plan, or a plan whose words could start
/// anything but the repeated program with options that a study passes on
std::string to_text(const study_plan& plan);
study_plan study_from(const std::string& text);

} // namespace troupe
