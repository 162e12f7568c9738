// SPDX-License-Identifier: BSD-3-Clause
// Counts tensor memory, and owns allocations.
#pragma once

#include "kernels/memory_space.hpp"

#include <atomic>
#include <cstdint>

namespace troupe {

/// Counts the bytes of tensor memory of one rank, or of one use of that memory. Also
/// stores the memory space. Thread-safe.
class memory_account {
public:
  /// \param space outlives this account
  explicit memory_account(memory_space& space = host_memory()) : space_(&space) {
    // nop
  }

  /// A part of another account's memory: each count is added to both accounts. `whole`
  /// must outlive this account.
  explicit memory_account(memory_account* whole)
    : memory_account(whole, *whole->space_) {
    // nop
  }

  /// A part of another account's memory, in another memory space. `whole` and `space`
  /// must outlive this account.
  memory_account(memory_account* whole, memory_space& space)
    : whole_(whole), space_(&space) {
    // nop
  }

  memory_space& space() const { return *space_; }

  /// Counts one allocation from the space.
  void allocated(std::int64_t bytes);
  /// Adds to the bytes in use.
  void use(std::int64_t bytes);
  /// Subtracts from the bytes in use.
  void release(std::int64_t bytes);

  /// Number of allocations from the space so far.
  std::int64_t allocations() const { return allocations_; }

  /// Total size of all allocations so far in bytes, also of memory that was freed.
  std::int64_t reserved() const { return reserved_; }

  /// The largest number of bytes in use at the same time.
  std::int64_t peak() const { return peak_; }

private:
  memory_account* whole_ = nullptr;
  memory_space* space_;
  std::atomic<std::int64_t> allocations_ = 0;
  std::atomic<std::int64_t> reserved_ = 0;
  std::atomic<std::int64_t> in_use_ = 0;
  std::atomic<std::int64_t> peak_ = 0;
};

/// Owns the memory of one tensor or of several: zeroed at first, aligned to a cache
/// line. All values are of one kind.
class tensor_memory {
public:
  tensor_memory() = default;

  /// Allocates from the account's space, which must outlive this object. The account
  /// may end earlier. Allocates nothing for 0 values.
  /// \throws std::bad_alloc
  /// \throws std::runtime_error if a GPU fails for another reason
  tensor_memory(std::int64_t values, memory_account& account,
                element kind = element::fp32);
  tensor_memory(tensor_memory&& source) noexcept;
  tensor_memory& operator=(tensor_memory source) noexcept;
  ~tensor_memory();

  /// The values; null without values, and for values that are not fp32.
  float* data() const { return as<float>(element::fp32); }

  /// The values; null without values, and for values that are not int32.
  std::int32_t* integers() const { return as<std::int32_t>(element::int32); }

  /// The address of values of any kind; null if there are none.
  const void* address() const { return memory_; }

  element kind() const { return kind_; }
  std::int64_t values() const { return values_; }
  std::int64_t bytes() const { return values_ * bytes_of(kind_); }

  /// The memory space of the values; null if there are none.
  const memory_space* space() const { return space_; }

private:
  template <class Value>
  Value* as(element asked) const {
    return kind_ == asked ? static_cast<Value*>(memory_) : nullptr;
  }

  void* memory_ = nullptr;
  memory_space* space_ = nullptr;
  element kind_ = element::fp32;
  std::int64_t values_ = 0;
};

/// `values` rounded up to a multiple of 16, so that the next array starts on a cache
/// line too.
constexpr std::int64_t padded(std::int64_t values) {
  return (values + 15) / 16 * 16;
}

} // namespace troupe
