#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <random>

struct CUstream_st {
  /// Runs work here and now, or later: by the seed, and at the latest when it is waited
  /// for. A GPU may do either.
  void enqueue(std::function<void()> work);

  /// Runs all there is, in order.
  void run_all();

  explicit CUstream_st(std::uint64_t seed) : dice_(seed) {}

private:
  void run_first();

  std::mt19937_64 dice_;
  std::deque<std::function<void()>> waiting_;
};

namespace troupe::on_host {

/// What queues made from now on choose by.
void seed_queues(std::uint64_t seed);

} // namespace troupe::on_host
