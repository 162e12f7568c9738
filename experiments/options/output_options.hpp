// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The paths of results, and the options of printed output.
struct output_options {
  std::string save; ///< Safetensors file for the weights; empty: none.
  std::string save_precision = "fp32"; ///< Type of the saved values: fp32 or bf16.
  /// File of the results; "-": standard output; empty: none.
  std::string json;
  std::string report;      ///< Folder of the report; empty: see makes_new_report().
  std::string tensorboard; ///< Folder of event files; empty: none.
  /// Port of the live page, or "true": any port. Empty or "false": there is no page.
  std::string watch;
  /// The start of the name of a new report folder, such as runs/compare, for runs
  /// without `report`. Empty if runs get no new report.
  std::string new_report;
  bool quiet = false;
  bool print = false;         ///< Draws timelines (simulate).
  std::string exported;       ///< File for the schedule (simulate); empty: none.
  bool whole_catalog = false; ///< Runs the whole catalog (verify).

  std::string config; ///< The file of --config; empty: none.
  /// The command as typed, with the program's bare name.
  std::vector<std::string> command;

  /// True if results go to standard output, and all other output to standard error.
  bool results_on_stdout() const { return json == "-"; }

  /// True if the report goes to a new folder: `report` is empty, and `new_report` is
  /// not. False for a quiet run with results on standard output.
  bool makes_new_report() const {
    return report.empty() && !new_report.empty() && !(quiet && results_on_stdout());
  }

  /// Port of the live page; 0: any free port. Absent if there is no page, or if `watch`
  /// is no number.
  std::optional<int> watch_port() const;

  /// The words of `command` in one line, with blanks between the words.
  std::string typed() const;
};

/// One sentence if `save_precision` or `watch` is wrong, else an empty text. Paths are
/// checked by output_files (files.hpp).
std::string validation_error(const output_options& o);

} // namespace troupe
