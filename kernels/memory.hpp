#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace troupe {

/// Counts the tensor memory of one rank, or what of it serves one use. Safe to use from
/// several threads.
class memory_account {
public:
  /// \param whole counts it too; may be null
  explicit memory_account(memory_account* whole = nullptr) : whole_(whole) {
    // nop
  }

  void allocated(std::int64_t bytes);
  void use(std::int64_t bytes);
  void release(std::int64_t bytes);

  /// How often memory was taken from the system, and how much.
  std::int64_t allocations() const { return allocations_; }
  std::int64_t reserved() const { return reserved_; }

  /// The most bytes in use at once.
  std::int64_t peak() const { return peak_; }

private:
  memory_account* whole_;
  std::atomic<std::int64_t> allocations_ = 0;
  std::atomic<std::int64_t> reserved_ = 0;
  std::atomic<std::int64_t> in_use_ = 0;
  std::atomic<std::int64_t> peak_ = 0;
};

/// Memory of one tensor or of many: zeroed, aligned to a cache line, owned.
class tensor_memory {
public:
  tensor_memory() = default;

  /// \throws std::bad_alloc
  tensor_memory(std::int64_t values, memory_account& account);

  float* data() const { return data_.get(); }
  std::int64_t values() const { return values_; }
  std::int64_t bytes() const { return values_ * std::int64_t{sizeof(float)}; }

private:
  struct free_memory {
    void operator()(float* memory) const;
  };

  std::unique_ptr<float, free_memory> data_;
  std::int64_t values_ = 0;
};

/// `values` rounded up to whole cache lines, so that what follows is aligned too.
constexpr std::int64_t padded(std::int64_t values) {
  return (values + 15) / 16 * 16;
}

} // namespace troupe
