// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/output_places.hpp"
#include "experiments/report/results.hpp"
#include "kernels/folder_lock.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Of each rank in a trace: what viewers open with ease.
inline constexpr std::int64_t actions_in_trace = 10'000;

/// The files that a program leaves behind: weights and a trace as soon as a run is
/// over, the results of all runs so far after each. Each is written whole or not at
/// all.
class output_files {
public:
  /// \param o outlives the files
  explicit output_files(const options& o)
    : options_(o), places_(o.output), report_(places_.report) {}

  /// Takes away folders that were made and are empty.
  ~output_files();

  /// Makes the folders for the report and for TensorBoard, and tries every place that
  /// the runs will write to, before hours of training go to waste. Empty if all can be
  /// written, else the sentence for the user.
  std::string refusal(const std::vector<run_request>& runs = {});

  /// The folder for what TensorBoard shows of a run; empty: there is none.
  std::filesystem::path events_of(const run_request& request) const;

  /// How many of a rank's first actions are shown: in traces, or on the page of --watch
  /// alone, for which all ranks together keep no more than some 100 MB. \pre refusal()
  /// was called
  std::int64_t actions_shown(const run_plan& plan) const;

  /// Where report.html is in the end; empty: nowhere. \pre refusal() was called
  std::filesystem::path page_file() const;

  /// These return what went wrong, if anything.
  std::string write_weights(const run_request& request, const run_result& result,
                            bool only_run);
  std::string write_trace(const run_account& run);
  std::string write_schedule(const run_request& request, const run_result& ran);
  std::string write_results(const std::string& text);
  std::string end_results(const std::string& text); ///< To standard output too.
  /// report.html, of all runs whose traces were written. \pre end_results() was called
  std::string write_page(const std::string& results, const std::string& table);
  /// The same before the end; empty if there are no such runs.
  std::string page(const std::string& results, const std::string& table) const;

  /// Where the files are, for the last line; empty if there are none.
  std::string summary() const;

private:
  std::filesystem::path weights_of(const run_request& request, bool only_run) const;
  std::filesystem::path trace_of(const run_request& request) const;
  bool writes_json() const;
  std::vector<named_file> planned(const std::vector<run_request>& runs) const;
  std::string make_report();
  std::string make_events(const std::vector<run_request>& runs);
  std::string note(const std::filesystem::path& path, const std::string& wrong);

  const options& options_;
  const output_options& places_;
  std::filesystem::path report_;
  bool made_report_ = false;
  bool made_events_ = false;
  folder_lock lock_;
  std::vector<std::filesystem::path> written_;
  std::vector<std::string> timelines_; // for report.html, of each run that is over
  bool cuts_traces_ = false;
};

} // namespace troupe
