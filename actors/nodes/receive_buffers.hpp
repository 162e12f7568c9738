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

/// Buffers that receive tensors of other processes. For each size, account and kind of
/// value, the number of buffers grows to the largest number in use at the same time.
/// The senders' pools and the schedule bound this number. For one thread; buffers may
/// be released on any thread.
class receive_buffers {
public:
  /// Returns a free buffer of exactly `values` values, and allocates one if necessary.
  /// Every buffer must be released before this object is destroyed.
  /// \param account pays for the memory; outlives this object
  /// \throws std::bad_alloc
  buffer acquire(std::int64_t values, memory_account& account,
                 element kind = element::fp32);

private:
  using size = std::tuple<memory_account*, element, std::int64_t>;
  std::map<size, std::vector<std::unique_ptr<pool>>> pools_; // of one buffer each
};

} // namespace troupe
