// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/memory.hpp"

#include <utility>

namespace troupe {

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

tensor_memory::tensor_memory(std::int64_t values, memory_account& account, element kind)
  : kind_(kind), values_(values) {
  if (values == 0)
    return;
  memory_ = account.space().allocate(bytes());
  space_ = &account.space();
  account.allocated(bytes());
}

tensor_memory::tensor_memory(tensor_memory&& source) noexcept
  : memory_(std::exchange(source.memory_, nullptr)),
    space_(std::exchange(source.space_, nullptr)),
    kind_(source.kind_),
    values_(std::exchange(source.values_, 0)) {
  // nop
}

tensor_memory& tensor_memory::operator=(tensor_memory source) noexcept {
  std::swap(memory_, source.memory_);
  std::swap(space_, source.space_);
  std::swap(kind_, source.kind_);
  std::swap(values_, source.values_);
  return *this;
}

tensor_memory::~tensor_memory() {
  if (memory_ != nullptr)
    space_->deallocate(memory_, bytes());
}

} // namespace troupe
