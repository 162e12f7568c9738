// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/run/awake_time.hpp"
#include "actors/run/stall.hpp"

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Observes the devices of a run in other processes. Any thread may call the functions.
class distant_watch {
public:
  virtual ~distant_watch() = default;

  /// The verdict of `stall_rule` over all devices of the other processes.
  virtual stall_rule::verdict look() = 0;
  virtual std::string at_work() = 0;
};

/// Watches a run in real time for stalls: observes the tasks of devices and readers,
/// and counts the time that the run was waited for.
class run_monitor {
public:
  /// \param plan,clock outlive this object
  run_monitor(const run_plan& plan, const wall_clock& clock);

  // Each function adds a device, reader or GPU group to watch. The returned object
  // receives the reports of tasks, and is owned by this object.
  occupation& device_of(int rank);
  occupation& device_of_server(position where);
  occupation& reader_of(position first);
  occupation& group_of(position member, const std::string& activity);

  /// Starts the watchdog.
  /// \param request_explanations,help as the watchdog's controls
  /// \param remote_watch watches the devices in other processes, in place of this
  /// object's devices; null if all devices are here
  /// \throws no_thread
  void begin(run_status& status, std::function<void()> request_explanations,
             std::function<void()> help, distant_watch* remote_watch = nullptr);
  void end() { watchdog_.reset(); }

  /// Reports that memory ran out for a message, so an actor may never end. Any thread
  /// may call.
  void break_down() { broken_ = true; }
  bool broken() const { return broken_; }

  /// While an object of this class lives, time counts as waited. At other times the run
  /// may be waiting for the caller.
  class waiting {
  public:
    explicit waiting(run_monitor& whose) : whose_(whose) { whose_.waited_.resume(); }
    ~waiting() { whose_.waited_.pause(); }
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;

  private:
    run_monitor& whose_;
  };

  // watch_here() starts to watch the tasks in this process, also for a watchdog in
  // another process. Only one thread may call look().
  void watch_here() { rule_.emplace(watched_tasks_, plan_.stall_timeout); }
  stall_rule::verdict look() { return rule_->look(clock_.now(), waited_awake()); }
  std::string at_work() const { return rule_->at_work(clock_.now()); }

  /// True if a task is under way that should have ended long ago.
  /// \pre no watchdog runs: end() has been called
  bool is_stuck();

private:
  occupation& add(std::string name, std::function<std::string(const task&)> doing,
                  int allowed_timeouts = 1);
  stall_rule::verdict look_at(distant_watch& remote_watch);
  nanoseconds waited_awake() { return waited_awake_ += awake_.look(waited_.now()); }
  std::string text_of(const task& current_task, position where) const;

  const run_plan& plan_;
  const wall_clock& clock_;
  wall_clock waited_;
  awake_time awake_{500'000'000};
  nanoseconds waited_awake_ = 0;  // of waited time, the part that awake_ counts
  nanoseconds stalled_since_ = 0; // waited_awake_ before other processes stalled
  std::atomic<bool> broken_ = false;
  std::list<occupation> occupations_;
  std::vector<watched> watched_tasks_;
  std::optional<stall_rule> rule_;
  std::unique_ptr<stall_watchdog> watchdog_;
};

} // namespace troupe
