// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Where results go, and what is printed.
struct output_options {
  std::string save;                    ///< Safetensors file.
  std::string save_precision = "fp32"; ///< What its values are: fp32 or bf16.
  std::string json;                    ///< "-": standard output.
  std::string report;                  ///< Folder.
  std::string tensorboard;             ///< Folder; empty: no event files.
  std::string watch; ///< A port, or "true": any. Empty or "false": nobody watches.
  /// Without a report: what the name of a new folder for one begins with, as
  /// runs/compare. Empty: there is no report then.
  std::string new_report;
  bool quiet = false;
  bool print = false;   ///< simulate: draw timelines
  std::string exported; ///< simulate: the file for the schedule; empty: none
  bool all = false;     ///< verify: the whole catalog

  std::string config;               ///< The file that gave some options.
  std::vector<std::string> command; ///< As it was typed, the program by its bare name.

  /// Whether results go to standard output, and everything else to standard error.
  bool results_on_stdout() const { return json == "-"; }

  /// Whether a new folder gets a report that no option names: not if the results on
  /// standard output are the only thing asked for.
  bool makes_new_report() const {
    return report.empty() && !new_report.empty() && !(quiet && results_on_stdout());
  }

  /// The port at which a browser may watch, 0: any; empty: nobody watches.
  std::optional<int> watch_port() const;

  /// The command in one line.
  std::string typed() const;
};

/// What is wrong with some of them, if anything.
std::string refusal(const output_options& o);

/// Options of output that a program has.
struct output_kinds {
  bool weights;  ///< --save
  bool results;  ///< --json
  bool report;   ///< --report
  bool timeline; ///< --print
  bool catalog;  ///< --all
};
void add_output(option_list& to, output_options& place, const output_kinds& has);

} // namespace troupe
