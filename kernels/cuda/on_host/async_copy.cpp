// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/async_copy.hpp"

#include "kernels/cuda/on_host/block.hpp"

#include <cstddef>
#include <cstring>

namespace troupe::on_host {

void begin_copy(void* to, const void* from, std::int64_t bytes, bool is_there) {
  const void* const by = __builtin_return_address(0);
  if (is_there)
    watch_access(from, bytes, access_kind::read, by);
  watch_access(to, bytes, access_kind::begun_write, by);
  copies_of_thread().push_back({to, is_there ? from : nullptr, bytes, by});
}

void wait_for_copies() {
  auto& copies = copies_of_thread();
  for (const auto& one : copies) {
    const auto bytes = static_cast<std::size_t>(one.bytes);
    watch_access(one.to, one.bytes, access_kind::write, one.by);
    if (one.from == nullptr) {
      std::memset(one.to, 0, bytes);
    } else {
      watch_access(one.from, one.bytes, access_kind::read, one.by);
      std::memcpy(one.to, one.from, bytes);
    }
  }
  copies.clear();
}

} // namespace troupe::on_host
