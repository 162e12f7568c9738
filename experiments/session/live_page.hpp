// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/progress.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/report/results.hpp"
#include "experiments/report/run_counts.hpp"
#include "experiments/session/page_server.hpp"
#include "experiments/session/throughput.hpp"
#include "messaging/bounded_list.hpp"
#include "models/evaluation.hpp"

#include <tl/expected.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The pages of --watch: the progress of the current run, and report.html of the runs
/// that have ended. The session's thread calls all functions.
class live_page {
public:
  /// Starts to serve the pages. The error is one sentence: why the server cannot listen
  /// at the port, or that no thread can start.
  /// \param port 0: any free port
  /// \param runs the runs of the command; outlive this object
  /// \param report path of the future report.html; empty: none
  static tl::expected<std::unique_ptr<live_page>, std::string>
  open(int port, const std::vector<run_request>& runs, const std::string& command,
       const std::string& report);

  std::string address() const { return server_->address(); }

  /// Shows that the proof of a run's first steps starts, before the run begins.
  void prove(const run_request& run);
  /// Shows that the next run begins, or the same run again.
  /// \param run stays valid until end_run() or the next begin()
  /// \param timing source of the times of the run's actions
  void begin(const run_request& run, timing_kind timing);

  // Functions that need a current run: after begin(), before end_run().

  void add(const progress& p);
  void add(const recent_actions& recent);
  /// Shows the number of microbatches that count_microbatches() has counted so far.
  void add_simulated(double microbatches);
  void add_evaluation(total_steps steps, const score& s);

  /// Shows that the current run has ended.
  /// \param report HTML of the page of all ended runs; empty: the previous page stays
  void end_run(ending outcome, std::string report);

  /// Shows that all runs have ended. Waits at most three seconds while browsers still
  /// request data, so that the browsers receive the end.
  /// \param written false: report.html was not written, and the page names no path
  void end(bool written);

private:
  struct point {
    double samples; // samples of the run
    double value;   // mean
    double count;   // number of joined values

    static void join(point& a, const point& b);
  };

  live_page(std::unique_ptr<page_server> server, const std::vector<run_request>& runs,
            std::string command, std::string report);
  void add_part(double done);
  std::string recent() const;
  void show(bool now);

  std::unique_ptr<page_server> server_;
  const std::vector<run_request>& runs_;
  std::string command_, report_;
  const run_request* run_ = nullptr; // the current run; null: none
  timing_kind timing_ = timing_kind::measured;
  std::string proved_; // text of the run whose first steps are being proved
  std::vector<ending> outcomes_;
  int version_ = 0; // version of the report
  bool ended_ = false;

  double done_ = 0, total_ = 0;
  throughput throughput_;
  std::optional<double> loss_; // the latest loss
  bounded_list<point> losses_;
  bounded_list<point> evaluations_; // losses of evaluations
  std::string waits_for_;
  std::vector<std::deque<measured_action>> ran_; // latest actions of each rank
  std::vector<nanoseconds> known_from_; // of each rank: all later actions are known
  double shown_at_ = 0;                 // seconds, of the last update
};

} // namespace troupe
