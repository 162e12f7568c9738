// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory_space.hpp"

#include <atomic>
#include <cstdint>

namespace troupe {

/// Counts the tensor memory of one rank, or what of it serves one use, and knows where
/// that is. Safe to use from several threads.
class memory_account {
public:
  explicit memory_account(memory_space& where = host_memory()) : where_(&where) {
    // nop
  }

  /// Of a part of another account's memory: what is counted here is counted there too.
  explicit memory_account(memory_account* whole)
    : memory_account(whole, *whole->where_) {
    // nop
  }

  /// The same of memory that is elsewhere.
  memory_account(memory_account* whole, memory_space& where)
    : whole_(whole), where_(&where) {
    // nop
  }

  memory_space& where() const { return *where_; }

  void allocated(std::int64_t bytes);
  void use(std::int64_t bytes);
  void release(std::int64_t bytes);

  /// How often memory was taken from its space, and how much.
  std::int64_t allocations() const { return allocations_; }
  std::int64_t reserved() const { return reserved_; }

  /// The most bytes in use at once.
  std::int64_t peak() const { return peak_; }

private:
  memory_account* whole_ = nullptr;
  memory_space* where_;
  std::atomic<std::int64_t> allocations_ = 0;
  std::atomic<std::int64_t> reserved_ = 0;
  std::atomic<std::int64_t> in_use_ = 0;
  std::atomic<std::int64_t> peak_ = 0;
};

/// Memory of one tensor or of many: zeroed, aligned to a cache line, owned. Holds one
/// kind of value for life.
class tensor_memory {
public:
  tensor_memory() = default;

  /// From the account's space. \throws std::bad_alloc
  tensor_memory(std::int64_t values, memory_account& account,
                element what = element::fp32);
  tensor_memory(tensor_memory&& other) noexcept;
  tensor_memory& operator=(tensor_memory other) noexcept;
  ~tensor_memory();

  /// The values; null if there are none, or they are not fp32.
  float* data() const { return as<float>(element::fp32); }

  /// The values; null if there are none, or they are not int32.
  std::int32_t* integers() const { return as<std::int32_t>(element::int32); }

  /// The same, of whatever kind.
  const void* address() const { return memory_; }

  element what() const { return what_; }
  std::int64_t values() const { return values_; }
  std::int64_t bytes() const { return values_ * bytes_of(what_); }

  /// Where it is; null if there is none.
  const memory_space* where() const { return where_; }

private:
  template <class Value>
  Value* as(element asked) const {
    return what_ == asked ? static_cast<Value*>(memory_) : nullptr;
  }

  void* memory_ = nullptr;
  memory_space* where_ = nullptr;
  element what_ = element::fp32;
  std::int64_t values_ = 0;
};

/// `values` rounded up to whole cache lines, so that what follows is aligned too.
constexpr std::int64_t padded(std::int64_t values) {
  return (values + 15) / 16 * 16;
}

} // namespace troupe
