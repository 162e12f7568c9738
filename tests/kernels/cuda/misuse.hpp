// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

/// Kernels with one mistake each, for tests of the code that finds mistakes.
namespace misuse {

// Each kernel sets `to` to the sum of the 64 neighbours in a block.
void sum_right(const float* from, float* to);
void sum_without_barrier(const float* from, float* to);
void sum_with_barrier_of_half(const float* from, float* to);
void sum_in_two_warps_of_one(const float* from, float* to);
void sum_of_unwritten(const float* from, float* to);
void sum_without_barrier_behind(const float* from,
                                float* to); // but before the next write

// Each kernel sets `to` to the sum of 64 values and of the first 32, which are copied
// while the block could continue.
void copies_right(const float* from, float* to);
void copies_without_wait(const float* from, float* to);
void copies_without_barrier(const float* from, float* to);
void copies_too_early(const float* from, float* to); // while others still read

void blocks_write_the_same(float* to);
void threads_write_the_same(float* to);
void threads_take_turns(float* to); // in one warp, with a sync between
void reads_beyond(const float* from, std::int64_t n, float* to);
void writes_its_input(float* from);
void counts_without_atomics(int* to);
void counts(int* to);
void shuffles_with_half(float* to);
void reads_packs_from_anywhere(const float* from, float* to);
void takes_too_much_shared(float* to);

} // namespace misuse
