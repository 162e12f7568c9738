// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/landing.hpp"

namespace troupe {

buffer landing::room(std::int64_t values, memory_account& of, element kind) {
  auto& pools = pools_[{&of, kind, values}];
  for (const auto& one : pools)
    if (auto free = one->acquire_if_free())
      return free;
  return pools
    .emplace_back(std::make_unique<pool>("tensors of other nodes", 1, values, of, kind))
    ->acquire();
}

} // namespace troupe
