// SPDX-License-Identifier: BSD-3-Clause
// Events of streams, and streams that wait for events, on the GPU that this machine
// imitates.
#pragma once

#include "kernels/cuda/on_host/onlooker.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace troupe::on_host {

/// An event that other streams wait for. Written by the thread of the GPU.
struct mark {
  explicit mark(int of) : stream(of) {
    // nop
  }

  int stream;
  std::atomic<bool> reached = false;
  std::exception_ptr failure = {}; // of the stream before the event
  progress order = {};             // launches that come before the event
};

/// A stream comes to an event of the stream, unless an earlier launch has failed.
class marking : public shared_launch {
public:
  explicit marking(std::shared_ptr<mark> of) : of_(std::move(of)) {
    // nop
  }

  void arrive() override {
    of_->order = progress_of(of_->stream);
    of_->reached = true;
  }
  bool over() override { return true; }
  void give_up(const std::exception_ptr& why) override { of_->failure = why; }
  wait waits_for() override { return {0, "it waits for nothing"}; }

private:
  std::shared_ptr<mark> of_;
};

/// A stream comes to a wait for the event of another stream.
class waiting : public shared_launch {
public:
  waiting(int stream, std::shared_ptr<mark> until)
    : stream_(stream), until_(std::move(until)) {
    // nop
  }

  void arrive() override {}
  bool over() override {
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

  static inline std::atomic<std::int64_t> passed = 0;

private:
  int stream_;
  std::shared_ptr<mark> until_;
};

} // namespace troupe::on_host
