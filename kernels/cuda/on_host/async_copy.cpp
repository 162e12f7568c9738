// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/async_copy.hpp"

#include "kernels/cuda/on_host/block.hpp"

#include <cstddef>
#include <cstring>

namespace troupe::on_host {

void begin_copy(void* to, const void* from, std::int64_t bytes, bool is_there) {
  const void* const code = __builtin_return_address(0);
  if (is_there)
    watch_access(from, bytes, access_kind::read, code);
  watch_access(to, bytes, access_kind::begun_write, code);
  copies_of_thread().push_back({to, is_there ? from : nullptr, bytes, code});
}

void wait_for_copies() {
  auto& copies = copies_of_thread();
  for (const auto& copy : copies) {
    const auto bytes = static_cast<std::size_t>(copy.bytes);
    watch_access(copy.to, copy.bytes, access_kind::write, copy.code);
    if (copy.from == nullptr) {
      std::memset(copy.to, 0, bytes);
    } else {
      watch_access(copy.from, copy.bytes, access_kind::read, copy.code);
      std::memcpy(copy.to, copy.from, bytes);
    }
  }
  copies.clear();
}

} // namespace troupe::on_host
