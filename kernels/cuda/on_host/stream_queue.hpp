// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>

// The queue of a stream on a GPU that this machine imitates, and launches that several
// streams share.

/// A launch that ends only when other streams have come to the counterpart: the stream
/// stalls there. Called by the thread of the GPU.
class shared_launch {
public:
  virtual ~shared_launch() = default;

  /// The stream has come to the launch. \throws the error of the launch
  virtual void arrive() = 0;

  /// True if the stream may continue. \throws the error if the stream never can
  virtual bool done() = 0;

  /// The stream has failed before the launch.
  virtual void give_up(const std::exception_ptr&) {}

  /// The stream that must come to the counterpart, and a text for messages: "call 3 of
  /// member 0 of group 2 waits for member 1". \pre not done
  struct wait {
    int stream;
    std::string text;
  };
  virtual wait waits_for() = 0;
};

/// A stream of a GPU that this machine imitates. One thread is the GPU. The thread
/// takes one launch after another from all streams with work, and keeps the order
/// within a stream. A seed chooses which stream comes next, how long the GPU idles, and
/// how late an end is reported. So do the times at which other threads launch: a seed
/// makes orders likely, and does not repeat an order.
struct CUstream_st {
  using completion_callback = std::function<void(std::exception_ptr failure)>;

  CUstream_st();

  /// Waits until the stream is idle.
  ~CUstream_st();

  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  /// Names later launches.
  void name_launches(const std::string& name) { name_ = name; }

  /// Enqueues a launch, which runs at some later time, unless an earlier launch has
  /// failed.
  void enqueue(std::function<void()> launch);

  /// Enqueues a launch at which the stream may stall.
  void enqueue(std::shared_ptr<shared_launch> launch);

  /// Number of the stream, from 1 on, as in the memory watch.
  int number() const { return number_; }

  /// Calls `callback` when all enqueued launches have ended.
  void on_complete(completion_callback callback);

  /// Waits until all enqueued launches and callbacks have ended. \throws the exception
  /// of a launch
  void wait();

private:
  friend class gpu_on_host;

  struct piece {
    std::function<void()> launch = {}; // or
    completion_callback callback = {}; // or
    std::shared_ptr<shared_launch> shared = {};
    std::int64_t issued = 0;
    std::string name = {};
  };

  /// Launches up to `launch` have ended, with `failure`; the callback has not run yet.
  struct reached_end {
    completion_callback callback;
    std::int64_t launch;
    std::exception_ptr failure;
  };

  bool is_idle() const { return pieces_.empty() && ends_.empty() && !is_running_; }
  void run(const piece& launched);
  bool try_call(const std::function<bool()>& question);

  int number_;       // from 1 on
  std::string name_; // name of new launches
  // Members that the GPU's lock guards:
  std::deque<piece> pieces_;
  std::deque<reached_end> ends_;
  bool is_running_ = false;
  // True if the stream has come to the first piece, which is shared.
  bool is_stalled_ = false;
  std::exception_ptr failure_;
};

namespace troupe::on_host {

/// Sets the seed by which the GPU chooses from now on.
void seed_streams(std::uint64_t seed);

/// Number of times that lists of launches ran as graphs, on all streams.
std::int64_t graphs_launched();

/// Number of completed waits of a stream for an event of another stream.
std::int64_t marks_passed();

/// Lets one of the next exchanges fail, as if a GPU were lost: the next exchange is
/// number 0.
void break_exchange(int number);

} // namespace troupe::on_host
