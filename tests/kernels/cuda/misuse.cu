// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/async_copy.hpp"
#include "kernels/cuda/source.hpp"
#include "kernels/cuda/stored.hpp"
#include "kernels/cuda/warp.hpp"
#include "tests/kernels/cuda/misuse.hpp"

namespace misuse {

using namespace troupe::cuda;

namespace {

enum class mistake {
  none,
  no_barrier,
  half_barrier,
  warp_for_block,
  unwritten,
  no_barrier_behind
};

__global__ void sum_of_block(const float* from, float* to, mistake what) {
  TROUPE_SHARED(float, all, [64]);
  const unsigned t = threadIdx.x;
  if (what != mistake::unwritten || t > 0)
    all[t] = from[t];
  if (what == mistake::none || what == mistake::unwritten
      || what == mistake::no_barrier_behind
      || (what == mistake::half_barrier && t < 32))
    __syncthreads();
  if (what == mistake::warp_for_block)
    __syncwarp();
  float sum = 0;
  for (int i = 0; i < 64; ++i)
    sum += all[(t + i) % 64];
  to[t] = sum;
  if (what == mistake::no_barrier_behind)
    all[t] = sum;
}

void sum(const float* from, float* to, mistake what) {
  launch(nullptr, {1, 1, 1}, {64, 1, 1}, 0, sum_of_block, from, to, what);
}

enum class copy_mistake { none, no_wait, no_barrier, too_early };

/// Twice, by one array: the second time half of the array becomes zeros.
__global__ void sum_of_copies(const float* from, float* to, copy_mistake what) {
  TROUPE_SHARED(float, all, [64]);
  const unsigned t = threadIdx.x;
  float sum = 0;
  for (int turn = 0; turn < 2; ++turn) {
    if (turn > 0 && what != copy_mistake::too_early)
      __syncthreads();
    if (turn == 0 || t >= 32)
      begin_copy<4>(&all[t], from + t, turn == 0);
    if (what == copy_mistake::too_early) // which orders the wait, but not the copy
      __syncthreads();
    if (what != copy_mistake::no_wait)
      wait_for_copies();
    if (what != copy_mistake::no_barrier)
      __syncthreads();
    for (int i = 0; i < 64; ++i)
      sum += all[(t + i) % 64];
  }
  to[t] = sum;
}

void sum_copies(const float* from, float* to, copy_mistake what) {
  launch(nullptr, {1, 1, 1}, {64, 1, 1}, 0, sum_of_copies, from, to, what);
}

__global__ void write_first(float* to) {
  if (threadIdx.x == 0)
    to[0] = 1;
}

__global__ void write_last(float* to, bool in_turns) {
  for (unsigned turn = 0; turn < (in_turns ? 32U : 1U); ++turn) {
    if (!in_turns || threadIdx.x == turn)
      to[0] = static_cast<float>(threadIdx.x);
    __syncwarp();
  }
}

__global__ void copy_behind(const float* from, std::int64_t n, float* to) {
  to[threadIdx.x] = from[n + threadIdx.x - 31];
}

__global__ void write_own(float* to) {
  to[threadIdx.x] = 1;
}

__global__ void count_up(int* to, bool atomically) {
  if (atomically)
    atomicAdd(to, 1);
  else
    *to += 1;
}

__global__ void shuffle_half(float* to) {
  float own = 1;
  if (threadIdx.x < 16)
    own = __shfl_xor_sync(whole_warp, own, 1);
  to[threadIdx.x] = own;
}

__global__ void copy_packs(stored from, stored to) {
  float values[pack];
  if (threadIdx.x > 0)
    return;
  from.load(0, 0, values);
  to.store(0, 0, values);
}

__global__ void fill_much(float* to) {
  TROUPE_SHARED(float, much, [20000]);
  much[threadIdx.x] = 1;
  to[threadIdx.x] = much[threadIdx.x];
}

} // namespace

void sum_right(const float* from, float* to) {
  sum(from, to, mistake::none);
}

void sum_without_barrier(const float* from, float* to) {
  sum(from, to, mistake::no_barrier);
}

void sum_with_barrier_of_half(const float* from, float* to) {
  sum(from, to, mistake::half_barrier);
}

void sum_in_two_warps_of_one(const float* from, float* to) {
  sum(from, to, mistake::warp_for_block);
}

void sum_of_unwritten(const float* from, float* to) {
  sum(from, to, mistake::unwritten);
}

void sum_without_barrier_behind(const float* from, float* to) {
  sum(from, to, mistake::no_barrier_behind);
}

void copies_right(const float* from, float* to) {
  sum_copies(from, to, copy_mistake::none);
}

void copies_without_wait(const float* from, float* to) {
  sum_copies(from, to, copy_mistake::no_wait);
}

void copies_without_barrier(const float* from, float* to) {
  sum_copies(from, to, copy_mistake::no_barrier);
}

void copies_too_early(const float* from, float* to) {
  sum_copies(from, to, copy_mistake::too_early);
}

void blocks_write_the_same(float* to) {
  launch(nullptr, {2, 1, 1}, {32, 1, 1}, 0, write_first, to);
}

void threads_write_the_same(float* to) {
  launch(nullptr, {1, 1, 1}, {32, 1, 1}, 0, write_last, to, false);
}

void threads_take_turns(float* to) {
  launch(nullptr, {1, 1, 1}, {32, 1, 1}, 0, write_last, to, true);
}

void reads_beyond(const float* from, std::int64_t n, float* to) {
  launch(nullptr, {1, 1, 1}, {32, 1, 1}, 0, copy_behind, from, n, to);
}

void writes_its_input(float* from) {
  launch(nullptr, {1, 1, 1}, {32, 1, 1}, 0, write_own, from);
}

void counts_without_atomics(int* to) {
  launch(nullptr, {2, 1, 1}, {64, 1, 1}, 0, count_up, to, false);
}

void counts(int* to) {
  launch(nullptr, {2, 1, 1}, {64, 1, 1}, 0, count_up, to, true);
}

void shuffles_with_half(float* to) {
  launch(nullptr, {1, 1, 1}, {32, 1, 1}, 0, shuffle_half, to);
}

void reads_packs_from_anywhere(const float* from, float* to) {
  launch(nullptr, {1, 1, 1}, {32, 1, 1}, 0, copy_packs, stored_of(from + 1),
         stored_of(to));
}

void takes_too_much_shared(float* to) {
  launch(nullptr, {1, 1, 1}, {32, 1, 1}, 0, fill_much, to);
}

} // namespace misuse
