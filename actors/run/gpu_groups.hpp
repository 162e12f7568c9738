// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/gpu_groups.hpp"
#include "actors/run/run_watch.hpp"
#include "kernels/cpu_device.hpp"
#include "kernels/join_group.hpp"
#include "messaging/group_calls.hpp"

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// GPUs were waited for, and whoever waits was told to end.
struct ended_while_joining : std::runtime_error {
  ended_while_joining() : std::runtime_error("ended while GPUs were waited for") {
    // nop
  }
};

/// The groups of a run whose GPUs exchange arrays themselves.
struct known_groups {
  /// By what their members find each other, by their places in exchanging_groups().
  /// Messages carry the arrays of others.
  std::map<int, group_id> ids;
  /// Why there are none although ranks are on GPUs of their own, in words; else empty.
  std::string absence;
};

/// Of a run that is all in this process. \throws std::runtime_error
known_groups groups_here(const run_plan& plan);

/// The ends of groups of GPUs that ranks here have: streams and communicators, and what
/// launches on them. All are made, and have moved something, before a run begins.
class gpu_groups {
public:
  /// \param threads that launch; outlive it, as do plan and watch \param ended may be
  /// set by another thread: nobody is waited for any longer; may be null \throws
  /// std::runtime_error with whom nobody found; std::bad_alloc, no_thread
  gpu_groups(const run_plan& plan, const known_groups& groups,
             const std::vector<int>& here,
             const std::shared_ptr<compute_threads>& threads, run_watch& watch,
             const std::function<bool()>& ended = {});

  /// Waits for what is under way.
  ~gpu_groups();
  gpu_groups(const gpu_groups&) = delete;
  gpu_groups& operator=(const gpu_groups&) = delete;

  /// A member's end, as of group_finder; null: it has none.
  gpu_group* find(position where, meeting_kind about, int stride);

  /// The end of a stage of an edge from one stage to another. Null: messages carry
  /// what goes there.
  gpu_group* find_edge(position from, position to, position end);

  /// What has not begun is forgotten; what is under way ends, and is made to if it does
  /// not soon, as those who could end it may be gone.
  void stop();

  bool idle() const;

  /// Whether no rank here is in a group.
  bool none() const { return ends_.empty(); }

private:
  class trial;
  struct end;
  struct joining;

  void join_all(const std::function<bool()>& ended);
  template <class What>
  void at_once(const What& what);
  template <class Is>
  gpu_group* find_if(position where, const Is& is);

  std::vector<std::unique_ptr<end>> ends_;
};

} // namespace troupe
