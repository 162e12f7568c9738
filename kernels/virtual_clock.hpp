// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/device.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace troupe {

/// What the end of an instant is for, in this order.
enum class end_of_instant : std::uint8_t {
  arrivals,  ///< Ports serve what has arrived.
  decisions, ///< Whoever chooses by what has arrived chooses.
};

/// Time that passes only from one event to the next. For one thread.
class virtual_clock {
public:
  using event = std::function<void()>;

  nanoseconds now() const { return now_; }

  /// Calls `what` when the clock shows `when`; events of one instant in the order in
  /// which they were set. \pre when >= now()
  void at(nanoseconds when, event what);

  /// Calls `what` when nothing else is left to do at this instant; decisions when no
  /// arrivals are left either.
  void at_end_of_instant(event what, end_of_instant purpose);

  /// Calls the next event of this instant; when there is none, all that waits for its
  /// end; when nothing does, the first event of the next instant. False if there are
  /// none at all. Event by event, so that what an event touches is still in the cache
  /// for what follows from it.
  bool step();

  /// Drops all that is to come.
  void clear();

private:
  nanoseconds now_ = 0;
  std::map<nanoseconds, std::vector<event>> events_; // of instants to come
  std::vector<event> due_;                           // of this instant
  std::size_t next_due_ = 0;
  std::array<std::vector<event>, 2> at_end_; // by purpose
};

/// What an action costs where nothing is measured.
using cost_model = std::function<nanoseconds(const work& what)>;

/// Runs the arithmetic of an action when it starts, and ends it when its cost has
/// passed.
class virtual_device : public device {
public:
  /// \param clock outlives it; has no events of it any more when it goes
  /// \param on what its works launch kernels on; null: nothing that must be waited for
  virtual_device(virtual_clock& clock, cost_model cost, const stream* on = nullptr)
    : clock_(clock), cost_(std::move(cost)), on_(on) {
    // nop
  }
  virtual_device(const virtual_device&) = delete;
  virtual_device& operator=(const virtual_device&) = delete;

  void enqueue(work what, on_end ended) override;

  /// Forgets what is under way too, and whatever its callbacks hold.
  void stop() override {
    stopped_ = true;
    free_at_ = clock_.now();
    under_way_.clear();
  }
  bool idle() const override { return free_at_ <= clock_.now(); }

private:
  struct told_work {
    on_end ended;
    work_end result;
  };

  void end_first();

  virtual_clock& clock_;
  cost_model cost_;
  const stream* on_;
  nanoseconds free_at_ = 0;
  bool stopped_ = false;
  std::vector<told_work> under_way_; // in their order; seldom more than one
};

} // namespace troupe
