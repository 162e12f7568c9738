// SPDX-License-Identifier: BSD-3-Clause
// Running a GPU's kernels on fibres finds mistakes in kernels.

#include "kernels/cuda/on_host/block.hpp"
#include "tests/kernels/cuda/gpu_array.hpp"
#include "tests/kernels/cuda/misuse.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <numeric>

namespace troupe::fibres_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

std::vector<float> ascending(int n) {
  std::vector<float> result(static_cast<std::size_t>(n));
  std::iota(result.begin(), result.end(), 0.0F);
  return result;
}

} // namespace

#define CHECK_REFUSED(call, text)                                                      \
  CHECK_THROWS_MATCHES(call, on_host::kernel_error, MessageMatches(text))

TEST_CASE("threads of a block meet, and the next launch is behind it", "[fibres]") {
  const gpu::array<float> from{"from", ascending(64)}, to{"to", 64};
  misuse::sum_right(from.data(), to.data());
  CHECK(to.values() == std::vector<float>(64, 63 * 32));
}

TEST_CASE("what half a block or half a warp waits for is a mistake", "[fibres]") {
  const gpu::array<float> from{"from", ascending(64)}, to{"to", 64};
  CHECK_REFUSED(misuse::sum_with_barrier_of_half(from.data(), to.data()),
                ContainsSubstring("32 of 64 threads wait for the block")
                  || ContainsSubstring("reads 'all'")); // where accesses are watched
  CHECK_REFUSED(misuse::shuffles_with_half(to.data()),
                ContainsSubstring("some threads of warp 0 wait for the warp"));
}

TEST_CASE("more shared memory than a kernel may declare is a mistake", "[fibres]") {
  const gpu::array<float> to{"to", 64};
  CHECK_REFUSED(misuse::takes_too_much_shared(to.data()),
                ContainsSubstring("80000 bytes of shared memory"));
}

TEST_CASE("without a barrier another order of threads makes other bits", "[fibres]") {
  // Found although accesses are not watched.
  const gpu::array<float> from{"from", ascending(64)}, to{"to", 64};
  on_host::set_memory_watch(nullptr);
  misuse::sum_without_barrier(from.data(), to.data());
  const auto forward = to.values();
  on_host::run_threads(on_host::thread_order::backward);
  misuse::sum_without_barrier(from.data(), to.data());
  on_host::run_threads(on_host::thread_order::forward);
  CHECK(forward != to.values());
}

TEST_CASE("a copy is made when its thread waits for it, and not before", "[fibres]") {
  const gpu::array<float> from{"from", ascending(64)}, to{"to", 64};
  misuse::copies_right(from.data(), to.data());
  CHECK(to.values() == std::vector<float>(64, 63 * 32 + 31 * 16));
  on_host::set_memory_watch(nullptr);
  misuse::copies_without_wait(from.data(), to.data());
  for (const float sum : to.values())
    CHECK(sum < 0); // by the values that a block finds in shared memory
  misuse::copies_right(from.data(), to.data()); // and the next launch has no error
  CHECK(to.values() == std::vector<float>(64, 63 * 32 + 31 * 16));
}

#ifndef TROUPE_SANITIZED // where accesses are watched

TEST_CASE("a copy that nobody waits for is named, and one that comes too early",
          "[fibres]") {
  const gpu::array<float> from{"from", ascending(64)}, to{"to", 64};
  for (auto* const sum : {misuse::copies_without_wait, misuse::copies_without_barrier})
    CHECK_REFUSED(sum(from.data(), to.data()),
                  ContainsSubstring("reads 'all' at byte ")
                    && ContainsSubstring("which nobody has written, at misuse.cu:"));
  CHECK_REFUSED(misuse::copies_too_early(from.data(), to.data()),
                ContainsSubstring("race on 'all' at byte ")
                  && ContainsSubstring("of block 0 reads it at misuse.cu:")
                  && ContainsSubstring("of block 0 writes it at async_copy.hpp:")
                  && ContainsSubstring("no barrier"));
}

TEST_CASE("a forgotten barrier is named, with its lines", "[fibres]") {
  const gpu::array<float> from{"from", ascending(64)}, to{"to", 64};
  for (auto* const sum : {misuse::sum_without_barrier, misuse::sum_in_two_warps_of_one})
    CHECK_REFUSED(sum(from.data(), to.data()),
                  ContainsSubstring("reads 'all' at byte 1")
                    && ContainsSubstring("which nobody has written, at misuse.cu:"));
  CHECK_REFUSED(misuse::sum_without_barrier_behind(from.data(), to.data()),
                ContainsSubstring("race on 'all' at byte 0")
                  && ContainsSubstring("of block 0 reads it at misuse.cu:")
                  && ContainsSubstring("thread 0 of block 0 writes it at misuse.cu:")
                  && ContainsSubstring("no barrier"));
  misuse::sum_right(from.data(), to.data()); // and the next launch has no error
  CHECK(to.values() == std::vector<float>(64, 63 * 32));
}

TEST_CASE("what nobody has written is not read", "[fibres]") {
  const gpu::array<float> from{"from", ascending(64)}, to{"to", 64};
  CHECK_REFUSED(misuse::sum_of_unwritten(from.data(), to.data()),
                ContainsSubstring("reads 'all' at byte 0, which nobody has written"));
  const gpu::array<float> unwritten{"unwritten", 64};
  CHECK_REFUSED(misuse::sum_right(unwritten.data(), to.data()),
                ContainsSubstring("reads 'unwritten'"));
}

TEST_CASE("blocks of a launch have no order", "[fibres]") {
  const gpu::array<float> to{"to", 64};
  CHECK_REFUSED(misuse::blocks_write_the_same(to.data()),
                ContainsSubstring("thread 0 of block 0 writes it")
                  && ContainsSubstring("thread 0 of block 1 writes it"));
}

TEST_CASE("threads of a warp have no order but by its syncs", "[fibres]") {
  const gpu::array<float> to{"to", 1};
  misuse::threads_take_turns(to.data());
  CHECK(to.values()[0] == 31);
  CHECK_REFUSED(misuse::threads_write_the_same(to.data()),
                ContainsSubstring("race on 'to'")
                  && ContainsSubstring("thread 0 of block 0 writes it")
                  && ContainsSubstring("thread 1 of block 0 writes it"));
}

TEST_CASE("arrays end where they end, and inputs are only read", "[fibres]") {
  const gpu::array<float> from{"from", ascending(64)}, to{"to", 64};
  CHECK_REFUSED(misuse::reads_beyond(from.data(), 64, to.data()),
                ContainsSubstring("outside of every array"));
  misuse::reads_beyond(from.data(), 63, to.data());
  CHECK(to.values()[31] == 63);
  CHECK_REFUSED(misuse::writes_its_input(from.data()),
                ContainsSubstring("writes to 'from', which is only read"));
}

TEST_CASE("sixteen bytes at once are aligned", "[fibres]") {
  const gpu::array<float> from{"from", ascending(64)}, to{"to", 64};
  CHECK_REFUSED(misuse::reads_packs_from_anywhere(from.data(), to.data()),
                ContainsSubstring("reaches 16 bytes at once that are not aligned"));
}

TEST_CASE("atomic sums are no race, others are", "[fibres]") {
  const gpu::array<int> to{"to", {0}, gpu::use::updated};
  misuse::counts(to.data());
  CHECK(to.values() == std::vector<int>{128});
  CHECK_REFUSED(misuse::counts_without_atomics(to.data()),
                ContainsSubstring("race on 'to'"));
}

#endif

} // namespace troupe::fibres_test
