// SPDX-License-Identifier: BSD-3-Clause
// Hooks of -fsanitize=thread. Where kernels are compiled with that option, the compiler
// calls a hook before each access to memory that other threads may see. The sanitizer's
// own library is not linked.

#include "kernels/cuda/on_host/block.hpp"

#ifndef TROUPE_SANITIZED

namespace {

using troupe::on_host::access_kind;

void watched(const void* address, long bytes, access_kind kind, const void* from) {
  troupe::on_host::watch_access(address, bytes, kind, from);
}

} // namespace

// NOLINTBEGIN: the compiler chose these names
#define CALLER __builtin_return_address(0)
#define OF_SIZE(n)                                                                     \
  void __tsan_read##n(void* p) {                                                       \
    watched(p, n, access_kind::read, CALLER);                                          \
  }                                                                                    \
  void __tsan_write##n(void* p) {                                                      \
    watched(p, n, access_kind::write, CALLER);                                         \
  }                                                                                    \
  void __tsan_unaligned_read##n(void* p) {                                             \
    watched(p, n, access_kind::read, CALLER);                                          \
  }                                                                                    \
  void __tsan_unaligned_write##n(void* p) {                                            \
    watched(p, n, access_kind::write, CALLER);                                         \
  }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
OF_SIZE(1)
OF_SIZE(2)
OF_SIZE(4)
OF_SIZE(8)
OF_SIZE(16)
void __tsan_read_range(void* p, unsigned long n) {
  watched(p, static_cast<long>(n), access_kind::read, CALLER);
}
void __tsan_write_range(void* p, unsigned long n) {
  watched(p, static_cast<long>(n), access_kind::write, CALLER);
}
}
// NOLINTEND

#endif
