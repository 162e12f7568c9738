// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/progress.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/report/results.hpp"
#include "experiments/report/run_counts.hpp"
#include "experiments/session/pace.hpp"
#include "experiments/session/page_server.hpp"
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

/// What --watch serves: how the run that goes on comes on, and report.html of those
/// that are over. The thread of the session calls all of it.
class live_page {
public:
  /// \param port 0: any that is free \param runs outlive it
  /// \param report where report.html will be; empty: nowhere
  /// On error says why nobody can listen there.
  static tl::expected<std::unique_ptr<live_page>, std::string>
  at(int port, const std::vector<run_request>& runs, const std::string& command,
     const std::string& report);

  std::string address() const { return server_->address(); }

  /// The first steps of a run are proved, before it begins.
  void prove(const run_request& run);
  /// The next run begins, or anew. \param timing of its actions
  void begin(const run_request& run, timing_kind timing);
  void add(const progress& p);
  void add(const recent_actions& recent);
  void add_simulated(double microbatches); ///< As count_microbatches counts.
  void add_evaluation(total_steps steps, const score& s);

  /// A run is over. \param report the page of all that are; empty: there is none
  void end_run(ending how, std::string report);

  /// All is over. Waits a moment for who is looking, so that they see it. \param
  /// written whether report.html is where it was to be
  void end(bool written);

private:
  struct point {
    double at;    // samples of the run
    double value; // mean
    double count; // of how many

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
  const run_request* run_ = nullptr; // that goes on
  timing_kind timing_ = timing_kind::measured;
  std::string proved_; // text of the run whose first steps are proved now
  std::vector<ending> over_;
  int version_ = 0; // of the report
  bool ended_ = false;

  double done_ = 0, all_ = 0;
  pace pace_;
  std::optional<double> loss_; // the last
  bounded_list<point> losses_;
  bounded_list<point> evaluations_; // their losses
  std::string waits_for_;
  std::vector<std::deque<measured_action>> ran_; // last, a rank each
  std::vector<nanoseconds> known_from_;          // when those of a rank begin
  double shown_at_ = 0;                          // seconds
};

} // namespace troupe
