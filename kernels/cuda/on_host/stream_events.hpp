// SPDX-License-Identifier: BSD-3-Clause
// Events of streams, and streams that wait for events, on the GPU that this machine
// imitates.
#pragma once

#include "kernels/cuda/on_host/launch_registry.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace troupe::on_host {

/// An event that other streams wait for. Written by the thread of the GPU.
struct stream_event {
  explicit stream_event(int stream_number) : stream(stream_number) {
    // nop
  }

  int stream;
  std::atomic<bool> reached = false;
  std::exception_ptr failure = {}; // of the stream before the event
  progress order = {};             // launches that come before the event
};

/// The launch that records an event when the stream reaches the launch. If an earlier
/// launch has failed, the event stores the failure.
class event_record : public shared_launch {
public:
  explicit event_record(std::shared_ptr<stream_event> event)
    : event_(std::move(event)) {
    // nop
  }

  void arrive() override {
    event_->order = progress_of(event_->stream);
    event_->reached = true;
  }
  bool done() override { return true; }
  void give_up(const std::exception_ptr& why) override { event_->failure = why; }
  wait waits_for() override { return {0, "it waits for nothing"}; }

private:
  std::shared_ptr<stream_event> event_;
};

/// The launch at which a stream waits for the event of another stream.
class event_wait : public shared_launch {
public:
  event_wait(int stream, std::shared_ptr<stream_event> until)
    : stream_(stream), until_(std::move(until)) {
    // nop
  }

  void arrive() override {}
  bool done() override {
    if (until_->failure)
      std::rethrow_exception(until_->failure);
    if (!until_->reached)
      return false;
    pass(stream_, until_->order);
    passed += until_->stream != stream_;
    return true;
  }
  wait waits_for() override {
    return {until_->reached ? 0 : until_->stream, "stream " + std::to_string(stream_)
                                                    + " waits for stream "
                                                    + std::to_string(until_->stream)};
  }

  /// Number of completed waits of a stream for an event of another stream.
  static inline std::atomic<std::int64_t> passed = 0;

private:
  int stream_;
  std::shared_ptr<stream_event> until_;
};

} // namespace troupe::on_host
