// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/benchmarks/benchmarks.hpp"
#include "kernels/bf16.hpp"
#include "kernels/bf16_choice.hpp"
#include "kernels/bf16_gemm.hpp"

#ifdef TROUPE_ONEDNN
#include <dnnl.h>
#include <omp.h>
#else
#include "kernels/sgemm.hpp"
#endif

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace troupe {

namespace {

constexpr std::int64_t copied = 1 << 26; // bytes: more than caches hold

/// A group of threads that compute a square product or a copy at once, each on a space
/// of its own.
struct thread_group {
  explicit thread_group(int threads) : size(threads) {
    for (int i = 0; i < threads; ++i)
      spaces.emplace_back(std::max<std::size_t>(3 * side * side, copied / 2), 0.5F);
  }

  /// Seconds that all threads take to call `work` on a space each, side by side.
  template <class Work>
  double seconds(const Work& work) {
    return seconds_of([&] {
      std::vector<std::jthread> threads;
      for (int i = 1; i < size; ++i)
        threads.emplace_back(
          [&, i] { work(spaces[static_cast<std::size_t>(i)].data()); });
      work(spaces[0].data());
    });
  }

  static constexpr std::int64_t side = 1024;
  int size;
  std::vector<std::vector<float>> spaces;
};

void square_product(float* space) {
  yardstick_product(thread_group::side, space);
}

void copy_half(float* space) {
  std::memcpy(space, reinterpret_cast<const char*>(space) + copied, copied);
}

/// Seconds from the notification of a condition variable to the first instruction of
/// the waiting thread, after `idle` of waiting.
double wake_seconds(std::chrono::milliseconds idle, int repeats) {
  using clock = std::chrono::steady_clock;
  std::mutex lock;
  std::condition_variable news;
  int asked = 0;
  clock::time_point woken;
  bool awake = false, is_done = false;
  std::vector<double> delays;
  std::jthread sleeper{[&] {
    std::unique_lock held{lock};
    for (int seen = 0; !is_done;) {
      news.wait(held, [&] { return is_done || asked > seen; });
      woken = clock::now();
      seen = asked;
      awake = true;
      news.notify_all();
    }
  }};
  for (int i = 0; i < repeats; ++i) {
    compute_for(idle);
    clock::time_point notified_at;
    {
      const std::lock_guard held{lock};
      ++asked;
      awake = false;
      notified_at = clock::now();
    }
    news.notify_all();
    std::unique_lock held{lock};
    news.wait(held, [&] { return awake; });
    delays.push_back(std::chrono::duration<double>(woken - notified_at).count());
  }
  {
    const std::lock_guard held{lock};
    is_done = true;
  }
  news.notify_all();
  return median(std::move(delays));
}

/// Measures each path of bf16 products side by side with sgemm, on one core, including
/// packing.
void measure_bf16_paths(const benchmark& b) {
  constexpr std::int64_t side = 512;
  constexpr double operations = 2.0 * side * side * side;
  std::vector<float> exact(3 * side * side, 0.5F);
  const std::vector<bf16> left(side * side, bf16{bf16_of(0.5F)}), right = left;
  std::vector<bf16> to(side * side);
  for (const auto path : bf16_paths()) {
    const auto product = [&] {
      bf16_gemm(path, dense(left.data(), side, side), dense(right.data(), side, side),
                1, 0, dense(to.data(), side, side), {});
    };
    const auto took = take_turns(
      product, [&] { yardstick_product(side, exact.data()); }, 0.5);
    b.report({"ceilings", "bf16 512^3 by TROUPE_BF16=" + to_text(path),
              operations / took.first / 1e9, "GFLOP/s", took.second / took.first,
              name_of_yardstick()});
  }
}

} // namespace

#ifdef TROUPE_ONEDNN
void yardstick_product(std::int64_t side, float* space) {
  omp_set_num_threads(1); // of this thread
  const auto status =
    dnnl_sgemm('N', 'N', side, side, side, 1, space, side, space + side * side, side, 0,
               space + 2 * side * side, side);
  if (status != dnnl_success)
    throw std::runtime_error("dnnl_sgemm failed with status " + std::to_string(status));
}

const char* name_of_yardstick() {
  return "sgemm";
}
#else
void yardstick_product(std::int64_t side, float* space) {
  const auto matrix_at = [&](std::int64_t number) {
    return dense(space + number * side * side, side, side);
  };
  sgemm(matrix_at(0), matrix_at(1), 1, 0, matrix_at(2), {});
}

const char* name_of_yardstick() {
  return "troupe's sgemm";
}
#endif

bf16_product::bf16_product()
  : a_(32 * 512, bf16_of(0.5F)), b_(256 * 512, bf16_of(0.25F)), c_(32 * 256) {
  // nop
}

void bf16_product::operator()() const {
  const auto path = chosen_bf16_path().value();
  const auto make = block_of(path);
  const tile_state tiles{path};
  for (int pass = 0; pass < 32; ++pass)
    for (std::size_t column = 0; column < 256; column += block_side)
      make(512 / step_depth, a_.data(), b_.data() + column * 512, true,
           c_.data() + column, 256);
}

wake_times measure_wake_times() {
  using namespace std::chrono_literals;
  return {wake_seconds(1ms, 300), wake_seconds(1000ms, 5)};
}

void measure_ceilings(const benchmark& b) {
  const auto operations =
    2.0 * thread_group::side * thread_group::side * thread_group::side;
  const int cores = b.plan.machine.threads;
  thread_group single_core{1}, all_cores{cores};
  const auto on_cores = [&](const std::string& name) {
    return name + " on " + std::to_string(cores) + " cores";
  };
  const auto product = take_turns([&] { single_core.seconds(square_product); },
                                  [&] { all_cores.seconds(square_product); }, 1.0);
  b.report({"ceilings",
            std::string{name_of_yardstick()} + " 1024^3 on one core",
            operations / product.first / 1e9,
            "GFLOP/s",
            {},
            ""});
  b.report({"ceilings", on_cores(std::string{name_of_yardstick()} + " 1024^3"),
            cores * operations / product.second / 1e9, "GFLOP/s",
            cores * product.first / product.second, "one core"});
  measure_bf16_paths(b);
  const auto copy = take_turns([&] { single_core.seconds(copy_half); },
                               [&] { all_cores.seconds(copy_half); }, 1.0);
  b.report({"ceilings",
            "copy of memory on one core",
            2 * copied / copy.first / 1e9,
            "GB/s",
            {},
            ""});
  b.report({"ceilings", on_cores("copy of memory"),
            cores * 2 * copied / copy.second / 1e9, "GB/s",
            cores * copy.first / copy.second, "one core"});
}

} // namespace troupe
