// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>

namespace troupe {

class launched_end;
class memory_space;
class pool;

/// A buffer of a pool, shared by reference counting; it returns to its pool with the
/// last handle, on whatever thread that happens. Must not outlive the pool.
class buffer {
public:
  buffer() = default;
  buffer(const buffer& other);
  buffer(buffer&& other) noexcept : block_(other.block_) { other.block_ = nullptr; }
  buffer& operator=(buffer other) noexcept;
  ~buffer();

  explicit operator bool() const { return block_ != nullptr; }

  /// The values; null for an empty handle, and where they are not fp32.
  float* data() const;

  /// The values; null for an empty handle, and where they are not int32.
  std::int32_t* integers() const;

  /// Where they are; null for an empty handle.
  const memory_space* where() const;

  /// A work that a GPU may still be at reads it, while its handles go: whoever writes
  /// there next does so behind it. Replaces an earlier one. \pre it has a block, of a
  /// pool whose buffers GPUs alone write
  void read_until(std::shared_ptr<launched_end> reader) const;

  /// That work, once, for who is about to write; null: there is none.
  std::shared_ptr<launched_end> take_reader() const;

private:
  friend class pool;
  struct block;

  explicit buffer(block* b) : block_(b) {
    // nop
  }

  block* block_ = nullptr;
};

} // namespace troupe
