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

/// Devices of a run in other processes. Any thread may look.
class distant_watch {
public:
  virtual ~distant_watch() = default;

  /// As of `stall_rule`, over all of them.
  virtual stall_rule::verdict look() = 0;
  virtual std::string at_work() = 0;
};

/// Watches over a run in real time: knows what each of its devices and readers is at,
/// and how long the run has been waited for.
class run_watch {
public:
  /// \param plan,clock outlive it
  run_watch(const run_plan& plan, const wall_clock& clock);

  // These return where somebody is to say what it does.
  occupation& device_of(int rank);
  occupation& device_of_server(position where);
  occupation& reader_of(position first);
  occupation& group_of(position member, const std::string& deed);

  /// Begins to watch. \param ask,help as of `watcher`
  /// \param others whose devices count too; may be null \throws no_thread
  void begin(notice_board& board, std::function<void()> ask, std::function<void()> help,
             distant_watch* others = nullptr);
  void end() { watcher_.reset(); }

  /// Memory ran out for a message, so an actor may never end. From any thread.
  void break_down() { broken_ = true; }
  bool broken() const { return broken_; }

  /// Time counts as waited while one of these lives: else the run may wait for the
  /// caller.
  class waiting {
  public:
    explicit waiting(run_watch& whose) : whose_(whose) { whose_.waited_.resume(); }
    ~waiting() { whose_.waited_.pause(); }
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;

  private:
    run_watch& whose_;
  };

  // What devices are at that are here: for whoever watches from another process. look()
  // is for one thread.
  void watch_here() { rule_.emplace(all_, plan_.stall_timeout); }
  stall_rule::verdict look() { return rule_->look(clock_.now(), waited_awake()); }
  std::string at_work() const { return rule_->at_work(clock_.now()); }

  /// Whether somebody is at something that should have ended long ago. \pre end()
  bool somebody_is_stuck();

private:
  occupation& add(std::string who, std::function<std::string(const task&)> doing,
                  int patience = 1);
  stall_rule::verdict look_at(distant_watch& others);
  nanoseconds waited_awake() { return waited_awake_ += awake_.look(waited_.now()); }
  std::string text_of(const task& what, position where) const;

  const run_plan& plan_;
  const wall_clock& clock_;
  wall_clock waited_;
  awake_time awake_{500'000'000};
  nanoseconds waited_awake_ = 0;  // of time waited, that of looks
  nanoseconds stalled_since_ = 0; // likewise; for look_at
  std::atomic<bool> broken_ = false;
  std::list<occupation> occupations_;
  std::vector<watched> all_;
  std::optional<stall_rule> rule_;
  std::unique_ptr<watcher> watcher_;
};

} // namespace troupe
