// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/memory_space.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace troupe {

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

class host_space : public memory_space {
public:
  void* allocate(std::int64_t count) override {
    const auto bytes = static_cast<std::size_t>(count);
    const auto alignment = bytes >= 2 * huge_page ? huge_page : cache_line;
    void* memory = nullptr;
    if (posix_memalign(&memory, alignment, bytes) != 0)
      throw std::bad_alloc{};
    if (alignment == huge_page)
      madvise(memory, bytes / huge_page * huge_page,
              MADV_HUGEPAGE); // fewer TLB misses; only a hint, and only for whole pages
    std::memset(memory, 0, bytes);
    return memory;
  }

  void deallocate(void* memory, std::int64_t) noexcept override { std::free(memory); }
};

} // namespace

memory_space& host_memory() {
  static host_space only; // one for all, stateless
  return only;
}

} // namespace troupe
