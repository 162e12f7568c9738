// SPDX-License-Identifier: BSD-3-Clause
// NCCL itself, as far as one GPU allows: a member that exchanges with itself.

#include "kernels/cuda/communicator.hpp"
#include "tests/kernels/cuda/gpu_array.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

namespace troupe::gpu_group_test {

using way = transfer::way;

TEST_CASE("NCCL moves values of unified memory from a GPU to itself", "[group]") {
  if (const auto why = gpu::absent(); !why.empty())
    SKIP(why);
  if (const auto why = cuda::absence_of_communicators(); !why.empty())
    SKIP(why);
  constexpr std::int64_t n = 100'000;
  auto& space = cuda::unified_memory(0);
  auto* const from = static_cast<float*>(space.allocate(n * 4));
  auto* const to = static_cast<float*>(space.allocate(n * 4));
  std::iota(from, from + n, 1.F);
  {
    cuda::stream on{0};
    const std::atomic<bool> ended = false;
    const auto group = cuda::join_group(on, {cuda::new_group(), 0, 1}, ended);
    for (const std::int64_t count : {std::int64_t{1}, n}) {
      std::fill_n(to, n, 0.F);
      group->exchange(std::array{transfer{way::send, 0, from, count},
                                 transfer{way::receive, 0, to, count}});
      on.wait();
      group->check();
      CHECK(std::equal(from, from + count, to));
      CHECK(std::count(to + count, to + n, 0.F) == n - count);
    }
    group->abort();
    CHECK_THROWS_WITH(group->check(), "the group of GPUs has been ended");
  }
  space.deallocate(to, n * 4);
  space.deallocate(from, n * 4);
}

} // namespace troupe::gpu_group_test
