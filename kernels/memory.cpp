#include "kernels/memory.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace troupe {

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

} // namespace

void memory_account::allocated(std::int64_t bytes) {
  ++allocations_;
  reserved_ += bytes;
  if (whole_ != nullptr)
    whole_->allocated(bytes);
}

void memory_account::use(std::int64_t bytes) {
  const auto now = in_use_ += bytes;
  for (auto most = peak_.load(); now > most;)
    if (peak_.compare_exchange_weak(most, now))
      break;
  if (whole_ != nullptr)
    whole_->use(bytes);
}

void memory_account::release(std::int64_t bytes) {
  in_use_ -= bytes;
  if (whole_ != nullptr)
    whole_->release(bytes);
}

void tensor_memory::free_memory::operator()(float* memory) const {
  std::free(memory);
}

tensor_memory::tensor_memory(std::int64_t values, memory_account& account)
  : values_(values) {
  if (values == 0)
    return;
  const auto bytes = static_cast<std::size_t>(values) * sizeof(float);
  const auto alignment = bytes >= 2 * huge_page ? huge_page : cache_line;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes) != 0)
    throw std::bad_alloc{};
  if (alignment == huge_page)
    madvise(memory, bytes / huge_page * huge_page,
            MADV_HUGEPAGE); // fewer TLB misses; only a wish, and only for whole pages
  std::memset(memory, 0, bytes);
  data_.reset(static_cast<float*>(memory));
  account.allocated(static_cast<std::int64_t>(bytes));
}

} // namespace troupe
