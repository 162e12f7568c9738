// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>

/// A launch that is over only when other streams have come to theirs: the stream stalls
/// there. Called by the GPU's thread.
class shared_launch {
public:
  virtual ~shared_launch() = default;

  /// The stream has come to it. \throws what is wrong with it
  virtual void arrive() = 0;

  /// Whether the stream goes on. \throws why it never will
  virtual bool over() = 0;

  /// The stream has failed before it came to it.
  virtual void give_up(const std::exception_ptr&) {}

  /// The stream whose launch it waits for, and what is to be said of that:
  /// "call 3 of member 0 of group 2 waits for member 1". \pre not over
  struct wait {
    int stream;
    std::string text;
  };
  virtual wait waits_for() = 0;
};

/// A stream of the GPU that this machine stands in for. One thread is that GPU: of all
/// streams that have something to do it runs one launch after another, those of a
/// stream in order. Which stream comes next, how long the GPU idles, and how much later
/// somebody is told of an end is chosen by a seed, and by when others launch: a seed
/// makes orders likely, it does not repeat them.
struct CUstream_st {
  using on_over = std::function<void(std::exception_ptr failure)>;

  CUstream_st();

  /// Waits.
  ~CUstream_st();

  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  /// Of launches to come.
  void name_launches(const std::string& of) { name_ = of; }

  /// Runs a launch at some later time; not if one before it has failed.
  void enqueue(std::function<void()> launch);

  /// The same of a launch at which the stream may stall.
  void enqueue(std::shared_ptr<shared_launch> launch);

  /// From 1 on: as whoever looks on knows it.
  int number() const { return number_; }

  /// Calls `then` behind all that has been enqueued.
  void when_over(on_over then);

  /// Until all of that is over. \throws what a launch threw
  void wait();

private:
  friend class gpu_on_host;

  struct piece {
    std::function<void()> launch = {}; // or
    on_over then = {};                 // or
    std::shared_ptr<shared_launch> shared = {};
    std::int64_t issued = 0;
    std::string name = {};
  };

  /// Launches up to this one have ended, with this failure, and nobody is told yet.
  struct reached_end {
    on_over then;
    std::int64_t launch;
    std::exception_ptr failure;
  };

  bool is_idle() const { return pieces_.empty() && ends_.empty() && !is_running_; }
  void run(const piece& what);
  bool ask(const std::function<bool()>& question);

  int number_;       // from 1 on
  std::string name_; // of whoever launches now
  // Under the GPU's lock:
  std::deque<piece> pieces_;
  std::deque<reached_end> ends_;
  bool is_running_ = false;
  bool is_stalled_ = false; // it has come to its first piece, which is shared
  std::exception_ptr failure_;
};

namespace troupe::on_host {

/// What the GPU chooses by from now on.
void seed_streams(std::uint64_t seed);

/// How often lists of launches were launched as graphs, on all streams.
std::int64_t graphs_launched();

/// How often streams have waited for a mark of another one.
std::int64_t marks_passed();

/// One of the exchanges to come fails, as if a GPU were lost: the first is number 0.
void break_exchange(int number);

} // namespace troupe::on_host
