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

/// A launch at which a stream stalls until another stream has come to the counterpart,
/// for example the receive of a send. The thread of the GPU calls the functions.
class shared_launch {
public:
  virtual ~shared_launch() = default;

  /// Called on the thread of the GPU when the stream comes to the launch, unless the
  /// stream has failed.
  /// \throws the error of the launch
  virtual void arrive() = 0;

  /// True if the stream may continue.
  /// \throws the error if the stream can never continue
  virtual bool done() = 0;

  /// Called if the stream has failed before the launch, or arrive() has thrown.
  virtual void give_up(const std::exception_ptr&) {}

  /// The number of the stream for which the launch waits, or 0, and a text for
  /// messages: "call 3 of member 0 of group 2 waits for member 1".
  /// \pre done() is false
  struct wait {
    int stream;
    std::string text;
  };
  virtual wait waits_for() = 0;
};

/// A stream of a GPU that this machine imitates. One thread imitates all GPUs. The
/// thread takes one launch after another from all streams with work, and keeps the
/// order within a stream. A seed chooses which stream comes next, how long the GPU
/// idles, and how late an end is reported. The times at which other threads launch also
/// change the order: a seed makes orders likely, and does not repeat an order.
struct CUstream_st {
  using completion_callback = std::function<void(std::exception_ptr failure)>;

  CUstream_st();

  /// Waits until the stream is idle.
  ~CUstream_st();

  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  /// Sets the name of later launches in error messages; an empty text ends the name.
  void name_launches(const std::string& name) { name_ = name; }

  /// Enqueues a launch, which runs at some later time, unless an earlier launch has
  /// failed.
  void enqueue(std::function<void()> launch);

  /// Enqueues a launch at which the stream may stall.
  void enqueue(std::shared_ptr<shared_launch> launch);

  /// Number of the stream, from 1 on; the memory watch uses the same number.
  int number() const { return number_; }

  /// Calls `callback` on the thread of the GPU, with the failure or null, when all
  /// launches enqueued so far have ended.
  void on_complete(completion_callback callback);

  /// Waits until all enqueued launches and callbacks have ended.
  /// \throws the exception of a launch
  void wait();

private:
  friend class gpu_on_host;

  /// An entry of the queue. One of the first three members is set.
  struct piece {
    std::function<void()> launch = {};
    completion_callback callback = {};
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
  // True while the stream waits at a shared launch, the first entry of `pieces_`.
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

/// Makes one later exchange fail, as if a GPU were lost. Counts the calls of
/// communicator::exchange() by all members, in the order in which streams come to the
/// calls. The next call has number 0; with a negative number, no call fails.
void break_exchange(int number);

} // namespace troupe::on_host
