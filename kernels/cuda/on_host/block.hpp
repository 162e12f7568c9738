// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/on_host/launch_registry.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// Runs CUDA kernels on this machine: the threads of a block are fibres of one thread.

namespace troupe::on_host {

/// Like CUDA's uint3 and dim3.
struct index3 {
  unsigned x = 0, y = 0, z = 0;
};

struct launch_shape {
  index3 grid{1, 1, 1};
  index3 block{1, 1, 1};
  std::int64_t dynamic_shared = 0; ///< Bytes of dynamic shared memory of each block.
};

/// The order in which the threads of a block continue, and the blocks of a launch run.
/// A warp runs as far ahead of other warps as barriers allow.
enum class thread_order : std::uint8_t { forward, backward, odd_first };

/// Sets the order of all later launches, on any thread.
/// \pre no kernel runs
void run_threads(thread_order order);

/// Runs a kernel on the calling thread: blocks one after another, a block's threads as
/// fibres.
/// \throws kernel_error for an error of the kernel, or a shape that no GPU accepts
void run_kernel(const launch_shape& shape, void (*kernel)(const void*),
                const void* arguments);

// Functions that kernels call:

index3 thread_index();
index3 block_index();
index3 block_size();
index3 grid_size();

/// Waits until all threads of the block have called sync_block(). Ends the launch with
/// an error if some threads end without the call.
void sync_block();

/// Waits until all threads of the warp have called sync_warp(). Ends the launch with an
/// error if some threads end, or wait for the block, without the call.
void sync_warp();

/// Exchanges one value per thread of the warp. Returns the value of thread `source`.
std::uint64_t exchange_in_warp(std::uint64_t value, unsigned source);

/// Exchanges one value per thread of the warp. Returns all values, valid until this
/// thread's next exchange. Not for code whose accesses are watched.
const std::uint64_t* all_in_warp(std::uint64_t value);

/// Returns one bit for each thread of the warp: 1 if the thread passed true.
unsigned ballot_in_warp(bool holds);

/// Index of this thread in the warp.
unsigned lane();

/// Adds to an int atomically. Returns the value before the addition.
int add_atomically(int* to, int value);

/// Returns an array in shared memory of the block. Contents are poisoned at the first
/// call in a block. Ends the launch if shared memory is too small.
/// \param where address that identifies the array
/// \param value bytes of one element
void* shared_array(const char* name, const void* where, std::int64_t bytes,
                   std::int64_t value);

/// The dynamic shared memory of a block, as large as the launch asked for.
/// \param value bytes of one element
void* dynamic_shared(const char* name, std::int64_t value);

/// A copy that a thread has started, and not waited for (async_copy.hpp).
struct pending_copy {
  void* to;
  const void* from; ///< Source of the bytes; null if zeros are written.
  std::int64_t bytes;
  const void* code; ///< The address of the code that started the copy.
};

/// The pending copies of the running thread.
std::vector<pending_copy>& copies_of_thread();

/// Reports an access before the access is made. Ends the launch if the access is an
/// error. No effect outside of kernels, without a memory watch, or for the stack of a
/// kernel's thread.
/// \param from the address of the code that makes the access
void watch_access(const void* address, std::int64_t bytes, access_kind kind,
                  const void* from);

template <class Value>
Value from_lane(unsigned source, Value value) {
  static_assert(sizeof(Value) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange_in_warp(bits, source);
  Value result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

} // namespace troupe::on_host
