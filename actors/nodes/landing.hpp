// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/pool.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace troupe {

/// Buffers that tensors of other processes are read into. There are as many as were in
/// use at once: what may be under way is bounded by the pools of those who send, and by
/// the schedule. For one thread; buffers come back from any.
class landing {
public:
  /// A buffer of so many values. \throws std::bad_alloc
  buffer room(std::int64_t values, memory_account& of, element kind = element::fp32);

private:
  using size = std::tuple<memory_account*, element, std::int64_t>;
  std::map<size, std::vector<std::unique_ptr<pool>>> pools_; // of one buffer each
};

} // namespace troupe
