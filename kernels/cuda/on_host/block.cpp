// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/block.hpp"

#include "kernels/cuda/on_host/fibre.hpp"
#include "kernels/cuda/on_host/shared_memory.hpp"
#include "kernels/cuda/on_host/source_line.hpp"

#include <array>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::on_host {

namespace {

constexpr unsigned warp_size = 32;
constexpr unsigned most_threads = 1024;
constexpr std::int64_t most_static = 48 * 1024; // bytes of shared memory

enum class waits_for : std::uint8_t { nothing, warp, block };

struct thread {
  std::unique_ptr<fibre> runs;
  index3 index;
  waits_for waits = waits_for::nothing;
  bool ended = true;
  int barriers = 0;
  int warp_syncs = 0;
  std::vector<pending_copy> copies;
};

unsigned volume(const index3& size) {
  return size.x * size.y * size.z;
}

/// Index of the n-th of `count` items, in an order.
unsigned nth(thread_order order, unsigned n, unsigned count) {
  switch (order) {
  case thread_order::forward:
    return n;
  case thread_order::backward:
    return count - 1 - n;
  case thread_order::odd_first:
    return n < count / 2 ? 2 * n + 1 : 2 * (n - count / 2);
  }
  return n;
}

thread_order order_now = thread_order::forward;
/// Runs kernels on one thread of this machine.
class runner {
public:
  void run(const launch_shape& shape, void (*kernel)(const void*),
           const void* arguments) {
    if (volume(shape.block) == 0 || volume(shape.block) % warp_size != 0
        || volume(shape.block) > most_threads || volume(shape.grid) == 0)
      throw kernel_error{"a launch is of whole warps, of at most 1024 threads a block, "
                         "and of at least one block"};
    shape_ = shape;
    kernel_ = kernel;
    arguments_ = arguments;
    launch_ = begin_launch();
    watch_ = current_memory_watch();
    error_.clear();
    while (threads_.size() < volume(shape.block))
      add_thread();
    const auto blocks = volume(shape.grid);
    for (unsigned n = 0; n < blocks && error_.empty(); ++n)
      run_block(nth(order_now, n, blocks));
    shared_.forget();
    if (!error_.empty())
      throw kernel_error{error_};
  }

  thread& now() { return *threads_[now_]; }
  unsigned number() const { return now_; }
  const index3& block() const { return block_; }
  const launch_shape& shape() const { return shape_; }

  void wait(waits_for target) {
    auto& self = now();
    self.waits = target;
    self.runs->pause();
  }

  const std::uint64_t* exchange(std::uint64_t value) {
    // Two sets in turns: no thread is two exchanges ahead of another.
    auto& slots = slots_[static_cast<unsigned>(now().warp_syncs) % 2];
    slots[now_] = value;
    wait(waits_for::warp);
    return &slots[now_ / warp_size * warp_size];
  }

  void* shared(const char* name, const void* where, std::int64_t bytes,
               std::int64_t value) {
    auto* const array = shared_.array(name, where, bytes, value);
    if (array == nullptr)
      fail(std::string{"'"} + name + "' is more shared memory than a GPU has");
    return array;
  }

  void* dynamic(const char* name, std::int64_t value) {
    return shared(name, &shape_, shape_.dynamic_shared, value);
  }

  void access(const void* address, std::int64_t bytes, access_kind kind,
              const void* from) {
    if (!inside_ || watch_ == nullptr || now().runs->owns(address))
      return;
    const auto& self = now();
    const auto number =
      block_.x + shape_.grid.x * (block_.y + shape_.grid.y * block_.z);
    if (std::has_single_bit(static_cast<std::uint64_t>(bytes))
        && reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uint64_t>(bytes)
             != 0)
      fail("thread " + std::to_string(now_) + " reaches " + std::to_string(bytes)
           + " bytes at once that are not aligned, at " + source_line(from));
    auto when = launch_;
    when.block = number;
    when.thread = static_cast<int>(now_);
    when.barriers = self.barriers;
    when.warp_syncs = self.warp_syncs;
    auto error = watch_->check_access(address, bytes, kind, when, from);
    if (!error.empty())
      fail(error);
  }

  bool inside() const { return inside_; }

  /// Ends the launch with an error; never returns to the caller.
  void fail(const std::string& message) {
    error_ = message;
    for (;;)
      now().runs->pause();
  }

private:
  void add_thread() {
    auto& added = threads_.emplace_back(std::make_unique<thread>());
    added->runs = std::make_unique<fibre>([this] {
      kernel_(arguments_);
      now().ended = true;
    });
  }

  void run_block(unsigned which) {
    block_ = {which % shape_.grid.x, which / shape_.grid.x % shape_.grid.y,
              which / shape_.grid.x / shape_.grid.y};
    shared_.begin(watch_);
    const auto count = volume(shape_.block);
    for (unsigned t = 0; t < count; ++t) {
      auto& current = *threads_[t];
      current.index = {t % shape_.block.x, t / shape_.block.x % shape_.block.y,
                       t / shape_.block.x / shape_.block.y};
      current.waits = waits_for::nothing;
      current.ended = false;
      current.barriers = current.warp_syncs = 0;
      current.copies.clear(); // of a thread that ended without a wait
    }
    while (error_.empty()) {
      for (unsigned n = 0; n < count / warp_size; ++n)
        run_warp(nth(order_now, n, count / warp_size) * warp_size);
      if (!error_.empty() || !pass_barrier(count))
        break;
    }
    if (const auto declared = shared_.bytes_without(&shape_); declared > most_static)
      error_ = "a block's arrays take " + std::to_string(declared)
               + " bytes of shared memory, of which a kernel may declare 49152";
    if (!error_.empty())
      keep_unfinished();
  }

  /// Runs a warp as far as possible without other warps.
  void run_warp(unsigned first) {
    for (;;) {
      unsigned waiting = 0;
      for (unsigned n = 0; n < warp_size; ++n) {
        now_ = first + nth(order_now, n, warp_size);
        if (!now().ended && now().waits == waits_for::nothing) {
          inside_ = true;
          now().runs->resume();
          inside_ = false;
        }
        if (!error_.empty())
          return;
        waiting += !now().ended && now().waits == waits_for::warp;
      }
      if (waiting == 0)
        return;
      if (waiting < warp_size) {
        error_ = "some threads of warp " + std::to_string(first / warp_size)
                 + " wait for the warp, and others have ended or wait for the block";
        return;
      }
      for (auto t = first; t < first + warp_size; ++t) {
        threads_[t]->waits = waits_for::nothing;
        ++threads_[t]->warp_syncs;
      }
    }
  }

  /// Releases threads that have come to a barrier. False if all threads have ended, or
  /// on an error.
  bool pass_barrier(unsigned count) {
    unsigned waiting = 0;
    for (unsigned t = 0; t < count; ++t)
      waiting += !threads_[t]->ended;
    if (waiting == 0)
      return false;
    if (waiting < count) {
      error_ = std::to_string(waiting) + " of " + std::to_string(count)
               + " threads wait for the block, and the others have ended";
      return false;
    }
    for (unsigned t = 0; t < count; ++t) {
      threads_[t]->waits = waits_for::nothing;
      ++threads_[t]->barriers;
    }
    return true;
  }

  /// Fibres in the middle of a kernel cannot end, so threads are kept until the program
  /// ends.
  void keep_unfinished() {
    static auto& kept = *new std::vector<std::unique_ptr<thread>>;
    for (auto& unfinished : threads_)
      kept.push_back(std::move(unfinished));
    threads_.clear();
  }

  launch_shape shape_;
  void (*kernel_)(const void*) = nullptr;
  const void* arguments_ = nullptr;
  std::vector<std::unique_ptr<thread>> threads_;
  shared_memory shared_;
  std::array<std::array<std::uint64_t, most_threads>, 2> slots_{};
  launch_position launch_;
  memory_watch* watch_ = nullptr; // of the launch
  index3 block_;
  unsigned now_ = 0;
  bool inside_ = false;
  std::string error_;
};

runner& host_runner() {
  static thread_local runner instance;
  return instance;
}

} // namespace

void run_threads(thread_order order) {
  order_now = order;
}

void run_kernel(const launch_shape& shape, void (*kernel)(const void*),
                const void* arguments) {
  host_runner().run(shape, kernel, arguments);
}

index3 thread_index() {
  return host_runner().now().index;
}

index3 block_index() {
  return host_runner().block();
}

index3 block_size() {
  return host_runner().shape().block;
}

index3 grid_size() {
  return host_runner().shape().grid;
}

void sync_block() {
  host_runner().wait(waits_for::block);
}

void sync_warp() {
  host_runner().wait(waits_for::warp);
}

std::uint64_t exchange_in_warp(std::uint64_t value, unsigned source) {
  return host_runner().exchange(value)[source % warp_size];
}

const std::uint64_t* all_in_warp(std::uint64_t value) {
  return host_runner().exchange(value);
}

unsigned ballot_in_warp(bool holds) {
  const auto* const votes = host_runner().exchange(holds ? 1 : 0);
  unsigned result = 0;
  for (unsigned i = 0; i < warp_size; ++i)
    result |= static_cast<unsigned>(votes[i]) << i;
  return result;
}

unsigned lane() {
  return host_runner().number() % warp_size;
}

void* shared_array(const char* name, const void* where, std::int64_t bytes,
                   std::int64_t value) {
  return host_runner().shared(name, where, bytes, value);
}

void* dynamic_shared(const char* name, std::int64_t value) {
  return host_runner().dynamic(name, value);
}

std::vector<pending_copy>& copies_of_thread() {
  return host_runner().now().copies;
}

int add_atomically(int* to, int value) {
  watch_access(to, sizeof *to, access_kind::atomic, __builtin_return_address(0));
  return std::exchange(*to, *to + value);
}

void watch_access(const void* address, std::int64_t bytes, access_kind kind,
                  const void* from) {
  host_runner().access(address, bytes, kind, from);
}

} // namespace troupe::on_host
