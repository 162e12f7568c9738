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

tensor_memory::tensor_memory(std::int64_t values, memory_account& account, element what)
  : what_(what), values_(values) {
  if (values == 0)
    return;
  memory_ = account.where().take(bytes());
  where_ = &account.where();
  account.allocated(bytes());
}

tensor_memory::tensor_memory(tensor_memory&& other) noexcept
  : memory_(std::exchange(other.memory_, nullptr)),
    where_(std::exchange(other.where_, nullptr)),
    what_(other.what_),
    values_(std::exchange(other.values_, 0)) {
  // nop
}

tensor_memory& tensor_memory::operator=(tensor_memory other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(where_, other.where_);
  std::swap(what_, other.what_);
  std::swap(values_, other.values_);
  return *this;
}

tensor_memory::~tensor_memory() {
  if (memory_ != nullptr)
    where_->give_back(memory_, bytes());
}

} // namespace troupe
