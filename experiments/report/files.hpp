// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/output_places.hpp"
#include "experiments/report/results.hpp"
#include "kernels/folder_lock.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Largest number of actions of each rank in a trace, which viewers open with ease. A
/// run that keeps its record (--print, --export) has all actions in its trace.
inline constexpr std::int64_t actions_in_trace = 10'000;

/// The files that a program leaves behind. Weights and a trace are written when a run
/// ends, the results of all runs so far after each run. Each file is written whole or
/// not at all.
class output_files {
public:
  /// \param o outlives this object
  explicit output_files(const options& o)
    : options_(o), output_(o.output), report_(output_.report) {}

  /// Removes folders that this object made and that are empty.
  ~output_files();

  /// Makes the folders for the report and for TensorBoard, and locks the report's
  /// folder. Tests the paths of --save, --json, --export, --report and --tensorboard
  /// before hours of training are lost. Returns an empty text if all these paths can be
  /// written, else the sentence for the user. A path that is also read, or written by
  /// two options, is an error; but one run may save over the file of --init. Several
  /// runs with --export are an error. So is a config.json beside the file of --save, if
  /// it is not the config of a GPT-2.
  std::string prepare(const std::vector<run_request>& runs = {});

  /// The folder of a run's TensorBoard events; empty: there is none.
  std::filesystem::path events_of(const run_request& request) const;

  /// The number of first actions that each rank keeps: actions_in_trace with a report,
  /// 0 with neither a report nor --watch. With --watch alone: 1,000,000 divided by the
  /// number of ranks, but from 500 to actions_in_trace. Up to 2,000 ranks then keep at
  /// most about 100 MB together.
  /// \pre prepare() was called
  std::int64_t actions_shown(const run_plan& plan) const;

  /// Path of report.html, which write_page() writes; empty if there is no report.
  /// \pre prepare() was called
  std::filesystem::path page_file() const;

  // Each function that writes returns one sentence about a failure, else an empty text.

  /// Writes the file of --save, if the result has parameters. Without --save writes
  /// nothing.
  /// \param only_run false: the schedule is added to the name of the file
  std::string write_weights(const run_request& request, const run_result& result,
                            bool only_run);
  /// Writes the trace of a run, if there is a report. Keeps the timeline for
  /// report.html and for the page of --watch, if actions_shown() is above 0.
  /// \pre run.result.actions has the kept actions
  std::string write_trace(const run_account& run);
  /// Writes the file of --export, if the run has finished. Without --export writes
  /// nothing.
  /// \param ran has all actions, if the schedule has a local rule
  std::string write_schedule(const run_request& request, const run_result& ran);
  /// Writes the file of --json, and results.json if there is a report. With --json -
  /// writes results.json alone.
  std::string write_results(const std::string& text);
  /// Writes the final results: to the files of write_results(), and with --json - to
  /// standard output.
  std::string end_results(const std::string& text);
  /// Writes report.html with all runs that write_trace() has received; nothing without
  /// a report or without runs.
  /// \param results text of results.json
  /// \param table text of results_table()
  /// \pre end_results() was called
  std::string write_page(const std::string& results, const std::string& table);
  /// The text of report.html with the runs that write_trace() has received so far;
  /// empty if write_trace() has kept no timeline.
  /// \param results text of results.json
  /// \param table text of results_table()
  std::string page(const std::string& results, const std::string& table) const;

  /// The lines at the end of the output: the paths of the written files, the folder of
  /// --tensorboard, and a note if traces are cut. Empty if no file was written and
  /// --tensorboard is not given.
  std::string summary() const;

private:
  std::filesystem::path weights_of(const run_request& request, bool only_run) const;
  std::filesystem::path trace_of(const run_request& request) const;
  bool writes_json() const;
  std::vector<named_file> planned(const std::vector<run_request>& runs) const;
  std::string make_report();
  std::string make_events(const std::vector<run_request>& runs);
  std::string note(const std::filesystem::path& path, const std::string& error);

  const options& options_;
  const output_options& output_;
  std::filesystem::path report_;
  bool made_report_ = false;
  bool made_events_ = false;
  folder_lock lock_;
  std::vector<std::filesystem::path> written_;
  // for report.html, one for each run that write_trace() has received
  std::vector<std::string> timelines_;
  bool cuts_traces_ = false;
};

} // namespace troupe
