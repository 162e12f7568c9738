// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/run/run_callbacks.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The events that the actors of a run post for the thread that waits for the run. Any
/// thread may call any function; one thread waits, and takes the posted values.
class run_status {
public:
  /// Parameters of the whole network after a batch: the parts of all stages in the
  /// snapshot (`in_snapshot()`), in any order.
  using snapshot = std::vector<mail::snapshot>;

  void post_finished();               ///< All ranks have finished.
  void post_failure(std::string why); ///< Only the first failure counts.
  void post_held();                   ///< All ranks rest: see run_loop::rest().
  /// All ranks wait at a checkpoint, after `batches` batches of this run.
  void post_checkpoint(int batches);
  void post_snapshot(snapshot s);
  void post_collected(std::vector<mail::collected> answers);
  void post_copied(); ///< All stages have copied for a save.
  void post_saved(std::vector<mail::saved> copies);
  void post_kept_state(mail::kept_state copies);
  void post_explanation(mail::waiting_for explanation);
  // The next three functions post no event: wait() and take_news() do not notice.
  void post_waiting(std::string for_whom); ///< Sets progress::waits_for.
  void post_progress(const progress& p);
  void post_updates(const std::vector<update_so_far>& updates);
  /// Adds actions for take_actions(). If more than 20,000 actions have not been taken,
  /// drops the oldest, and keeps 10,000.
  void post_actions(const std::vector<ranked_action>& ran);

  /// Waits until an event is posted, at most `at_most`. Returns immediately if an event
  /// was posted since the last wait() or take_news().
  void wait(std::chrono::milliseconds at_most);

  /// True if an event was posted since the last wait() or take_news().
  bool take_news() { return changed_.exchange(false); }

  // finished() stays true after post_finished(); failure() stays present after
  // post_failure().
  bool finished() const;
  std::optional<std::string> failure() const;

  // Each function returns and removes the posted value, if there is one;
  // take_snapshot() returns the oldest one. take_progress() removes only losses and
  // updates.
  progress take_progress();
  recent_actions take_actions();
  bool take_held();
  std::optional<int> take_checkpoint();
  std::optional<snapshot> take_snapshot();
  std::optional<std::vector<mail::collected>> take_collected();
  bool take_copied();
  std::optional<std::vector<mail::saved>> take_saved();
  std::vector<mail::kept_state> take_kept_state();

  /// All explanations since the start of the run.
  std::vector<mail::waiting_for> explanations() const;

private:
  template <class Change>
  void change(const Change& c);

  mutable std::mutex lock_;
  std::condition_variable news_;
  std::atomic<bool> changed_ = false;
  bool finished_ = false;
  bool held_ = false;
  std::optional<int> checkpoint_;
  std::optional<std::string> failure_;
  std::deque<snapshot> snapshots_;
  std::optional<std::vector<mail::collected>> collected_;
  bool copied_ = false;
  std::optional<std::vector<mail::saved>> saved_;
  std::vector<mail::kept_state> kept_state_;
  std::vector<mail::waiting_for> explanations_;
  progress progress_;
  recent_actions actions_;
};

} // namespace troupe
