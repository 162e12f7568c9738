// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/run/awake_time.hpp"
#include "actors/run/stall.hpp"
#include "plan/run_plan.hpp"

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Observes the devices of a run in other processes. Any thread may call the functions,
/// but one thread at a time calls look().
class distant_watch {
public:
  virtual ~distant_watch() = default;

  /// The verdict over all devices of the other processes. `stalled` only if every
  /// process has reported `stalled`.
  virtual stall_rule::verdict look() = 0;
  /// Lines about tasks under way in the other processes, in the form of
  /// stall_rule::at_work(); empty if no task is known.
  virtual std::string at_work() = 0;
};

/// Watches a run in real time for stalls. Observes the tasks of devices, readers and
/// GPU groups, and counts the time for which the caller has waited for the run.
class run_monitor {
public:
  /// \param plan,clock outlive this object
  run_monitor(const run_plan& plan, const wall_clock& clock);

  // Each function adds a device, reader or GPU group to watch. The returned object
  // receives the reports of tasks, and is owned by this object. A later call of begin()
  // or watch_here() starts to watch the added objects.
  occupation& device_of(int rank);
  occupation& device_of_server(position where);
  occupation& reader_of(position first);
  occupation& group_of(position member, const std::string& activity);

  /// Calls watch_here(), and starts the watchdog, which runs until end() or the
  /// destructor.
  /// \param status outlives the watchdog
  /// \param request_explanations,help members of stall_watchdog::controls; objects to
  /// which the functions refer outlive the watchdog
  /// \param remote_watch watches the devices in other processes, in place of this
  /// object's devices; outlives the watchdog. Null if all devices are here
  /// \throws no_thread
  void begin(run_status& status, std::function<void()> request_explanations,
             std::function<void()> help, distant_watch* remote_watch = nullptr);
  /// Ends the watchdog, and waits for the watchdog's thread.
  void end() { watchdog_.reset(); }

  /// Reports that memory ran out for a message, so an actor may never end. Any thread
  /// may call.
  void break_down() { broken_ = true; }
  /// True if break_down() was called. Any thread may call.
  bool broken() const { return broken_; }

  /// While an object of this class lives, time counts as waited, and may lead to a
  /// stall. At other times the run may be waiting for the caller. One object lives at a
  /// time.
  class waiting {
  public:
    /// \param whose outlives this object
    explicit waiting(run_monitor& whose) : whose_(whose) { whose_.waited_.resume(); }
    ~waiting() { whose_.waited_.pause(); }
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;

  private:
    run_monitor& whose_;
  };

  // A call of watch_here() starts to watch the tasks in this process, for a watchdog
  // here or in another process. The functions look() and at_work() apply a stall_rule
  // to these tasks, and need an earlier watch_here() or begin(). One thread at a time
  // may call look().
  void watch_here() { rule_.emplace(watched_tasks_, plan_.machine.stall_timeout); }
  stall_rule::verdict look() { return rule_->look(clock_.now(), waited_awake()); }
  std::string at_work() const { return rule_->at_work(clock_.now()); }

  /// True if look() returns `stalled` and a task is under way. False if neither begin()
  /// nor watch_here() was called.
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
