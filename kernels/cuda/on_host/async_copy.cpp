#include "kernels/cuda/on_host/async_copy.hpp"

#include "kernels/cuda/on_host/block.hpp"

#include <cstddef>
#include <cstring>

namespace troupe::on_host {

void pending_copies::begin(void* to, const void* from, std::int64_t bytes,
                           bool is_there, const void* by) {
  if (is_there)
    watch_access(from, bytes, access_kind::read, by);
  watch_access(to, bytes, access_kind::begun_write, by);
  copies_.push_back({to, is_there ? from : nullptr, bytes, by});
}

void pending_copies::finish() {
  for (const auto& one : copies_) {
    const auto bytes = static_cast<std::size_t>(one.bytes);
    watch_access(one.to, one.bytes, access_kind::write, one.by);
    if (one.from == nullptr) {
      std::memset(one.to, 0, bytes);
    } else {
      watch_access(one.from, one.bytes, access_kind::read, one.by);
      std::memcpy(one.to, one.from, bytes);
    }
  }
  copies_.clear();
}

void begin_copy(void* to, const void* from, std::int64_t bytes, bool is_there) {
  copies_of_thread().begin(to, from, bytes, is_there, __builtin_return_address(0));
}

void wait_for_copies() {
  copies_of_thread().finish();
}

} // namespace troupe::on_host
