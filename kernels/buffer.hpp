// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>

namespace troupe {

class gpu_completion;
class memory_space;
class pool;

/// A buffer of a pool, shared by reference counting. The last handle returns the buffer
/// to the pool, on any thread. Handles must not outlive the pool.
class buffer {
public:
  buffer() = default;
  buffer(const buffer& source);
  buffer(buffer&& source) noexcept : block_(source.block_) { source.block_ = nullptr; }
  buffer& operator=(buffer source) noexcept;
  ~buffer();

  explicit operator bool() const { return block_ != nullptr; }

  /// The values; null for an empty handle, and for values that are not fp32.
  float* data() const;

  /// The values; null for an empty handle, and for values that are not int32.
  std::int32_t* integers() const;

  /// The memory space of the values; null for an empty handle.
  const memory_space* space() const;

  /// Records a work that may still read the buffer on a GPU after all handles are gone.
  /// The next writer of the buffer must wait for that work. Replaces an earlier record.
  /// Threads must not call set_reader() or take_reader() of one buffer at the same
  /// time.
  /// \pre the handle is not empty, and only GPUs write buffers of the pool
  void set_reader(std::shared_ptr<gpu_completion> reader) const;

  /// Removes the record of set_reader(), and returns the work for which the next writer
  /// must wait; null without a record, or for an empty handle.
  std::shared_ptr<gpu_completion> take_reader() const;

private:
  friend class pool;
  struct block;

  explicit buffer(block* b) : block_(b) {
    // nop
  }

  block* block_ = nullptr;
};

} // namespace troupe
