#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <string>

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

  /// Calls `then` behind all that has been enqueued.
  void when_over(on_over then);

  /// Until all of that is over. \throws what a launch threw
  void wait();

private:
  friend class gpu_on_host;

  struct piece {
    std::function<void()> launch; // or
    on_over then;
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

  int number_;       // from 1 on
  std::string name_; // of whoever launches now
  // Under the GPU's lock:
  std::deque<piece> pieces_;
  std::deque<reached_end> ends_;
  bool is_running_ = false;
  std::exception_ptr failure_;
};

namespace troupe::on_host {

/// What the GPU chooses by from now on.
void seed_streams(std::uint64_t seed);

} // namespace troupe::on_host
