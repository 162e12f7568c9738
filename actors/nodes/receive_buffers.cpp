// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/receive_buffers.hpp"

namespace troupe {

buffer receive_buffers::acquire(std::int64_t values, memory_account& account,
                                element kind) {
  auto& pools = pools_[{&account, kind, values}];
  for (const auto& candidate : pools)
    if (auto free = candidate->acquire_if_free())
      return free;
  return pools
    .emplace_back(
      std::make_unique<pool>("tensors of other nodes", 1, values, account, kind))
    ->acquire();
}

} // namespace troupe
