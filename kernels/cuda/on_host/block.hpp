// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/on_host/onlooker.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace troupe::on_host {

/// As CUDA's uint3 and dim3.
struct index3 {
  unsigned x = 0, y = 0, z = 0;
};

struct launch_shape {
  index3 grid{1, 1, 1};
  index3 block{1, 1, 1};
  std::int64_t dynamic_shared = 0; ///< bytes
};

/// In which order the threads of a block go on, and the blocks of a launch run. A warp
/// runs as far ahead of the others as barriers let it.
enum class thread_order : std::uint8_t { forward, backward, odd_first };

/// The order of all launches to come, on any thread.
void run_threads(thread_order order);

/// Runs a kernel on this thread: blocks one after another, a block's threads as fibres.
/// \throws kernel_error
void run_kernel(const launch_shape& shape, void (*kernel)(const void*),
                const void* arguments);

// Called by kernels:

index3 thread_index();
index3 block_index();
index3 block_size();
index3 grid_size();

/// Until all threads of the block are here.
void sync_block();

/// Until all threads of the warp are here.
void sync_warp();

/// What thread `source` of the warp brings, when all have brought theirs.
std::uint64_t exchange_in_warp(std::uint64_t own, unsigned source);

/// What each thread of the warp brings, until this thread's next exchange. Not for
/// code whose accesses are watched.
const std::uint64_t* all_in_warp(std::uint64_t own);

/// A bit for each thread of the warp.
unsigned ballot_in_warp(bool holds);

/// Of this thread, in its warp.
unsigned lane();

/// \return what it was before
int add_atomically(int* to, int value);

/// Shared memory of the block. The same `where` is the same array; what it holds is
/// poisoned when a block begins.
void* shared_array(const char* name, const void* where, std::int64_t bytes,
                   std::int64_t value);

/// The same for what the launch asked for. \param bytes at most that
void* dynamic_shared(const char* name, std::int64_t value);

/// A copy that a thread has begun, and not waited for (async_copy.hpp).
struct pending_copy {
  void* to;
  const void* from; ///< Null: zeros.
  std::int64_t bytes;
  const void* by; ///< The address of the code.
};

/// Of the thread that runs now.
std::vector<pending_copy>& copies_of_thread();

/// An access is about to be made; ends the launch if it must not be.
void watch_access(const void* address, std::int64_t bytes, access_kind what,
                  const void* from);

template <class Value>
Value from_lane(unsigned source, Value own) {
  static_assert(sizeof(Value) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &own, sizeof own);
  bits = exchange_in_warp(bits, source);
  Value result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

} // namespace troupe::on_host
