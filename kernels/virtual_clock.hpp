// SPDX-License-Identifier: BSD-3-Clause
// Virtual time: a clock that jumps from event to event, and a device whose works take
// modelled time.
#pragma once

#include "kernels/device.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace troupe {

/// The purpose of an event at the end of an instant; arrivals come first.
enum class end_of_instant : std::uint8_t {
  arrivals,  ///< Ports serve the messages that have arrived.
  decisions, ///< Local rules choose among the messages that have arrived.
};

/// Time that passes only from one event to the next. For one thread.
class virtual_clock {
public:
  using event = std::function<void()>;

  nanoseconds now() const { return now_; }

  /// Calls `callback` when the clock reaches `time`. Events of one instant run in the
  /// order of the calls.
  /// \pre time >= now()
  void call_at(nanoseconds time, event callback);

  /// Calls `callback` when no other event of this instant is left; decisions run when
  /// no arrivals are left either.
  void at_end_of_instant(event callback, end_of_instant purpose);

  /// Calls the next event of this instant. If none is left, calls the events at the end
  /// of the instant: all arrivals, or else all decisions. If none of those is left
  /// either, moves to the next instant and calls the first event there. Returns false
  /// if no event is left at all. Each call runs few events, so that the data of an
  /// event is still in the cache for the events that follow.
  bool step();

  /// Drops all events that were not called yet.
  void clear();

private:
  nanoseconds now_ = 0;
  std::map<nanoseconds, std::vector<event>> events_; // of future instants
  std::vector<event> due_;                           // of this instant
  std::size_t next_due_ = 0;
  std::array<std::vector<event>, 2> at_end_; // by purpose
};

/// Returns the cost, in nanoseconds, of the action that a work computes, or computes a
/// part of. For devices that do not measure time.
using cost_model = std::function<nanoseconds(const work& item)>;

/// Runs the arithmetic of a work inside enqueue(). In virtual time a work starts when
/// earlier works have ended. The duration of a work is the cost of the share of the
/// action that the work computes.
class virtual_device : public device {
public:
  /// \param clock must outlive the device, and must call no event of the device after
  /// the destructor
  /// \param cost returns the cost of a work's action
  /// \param stream the stream on which works launch kernels; must outlive the device;
  /// null if no kernel needs a wait
  virtual_device(virtual_clock& clock, cost_model cost, const stream* stream = nullptr)
    : clock_(clock), cost_(std::move(cost)), stream_(stream) {
    // nop
  }
  virtual_device(const virtual_device&) = delete;
  virtual_device& operator=(const virtual_device&) = delete;

  void enqueue(work item, on_end ended) override;

  /// Drops works under way too, and all values that the callbacks `ended` hold.
  /// Callbacks of parts stay in the clock.
  void stop() override {
    stopped_ = true;
    free_at_ = clock_.now();
    under_way_.clear();
  }
  bool idle() const override { return free_at_ <= clock_.now(); }

private:
  struct pending_work {
    on_end ended;
    work_end result;
  };

  void end_first();

  virtual_clock& clock_;
  cost_model cost_;
  const stream* stream_;
  nanoseconds free_at_ = 0;
  bool stopped_ = false;
  std::vector<pending_work> under_way_; // in order; seldom more than one
};

} // namespace troupe
