// SPDX-License-Identifier: BSD-3-Clause
// The interface for sources of tensor memory, and the space of the machine's memory.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// The type of a tensor's values.
enum class element : std::uint8_t {
  fp32,
  int32, ///< Tokens and labels.
};

constexpr std::int64_t bytes_of(element kind) {
  switch (kind) {
  case element::fp32:
    return sizeof(float);
  case element::int32:
    return sizeof(std::int32_t);
  }
  return 0;
}

/// A source of tensor memory: the machine's memory, or a device's. Thread-safe. Must
/// outlive all memory allocated from this space.
class memory_space {
public:
  virtual ~memory_space() = default;

  /// Allocates zeroed memory, aligned to a cache line. The caller frees the memory with
  /// deallocate().
  /// \throws std::bad_alloc
  /// \throws std::runtime_error if a GPU fails for another reason
  virtual void* allocate(std::int64_t bytes) = 0;

  /// Names the purpose of memory from this space, for reports. Has no effect unless a
  /// space overrides the function.
  virtual void name(const void* /*memory*/, const std::string& /*what*/) {}

  /// Frees memory.
  /// \pre `memory` was allocated from this space, with this size
  virtual void deallocate(void* memory, std::int64_t bytes) noexcept = 0;
};

/// This machine's memory. Allocations of 4 MiB or more ask for huge pages.
memory_space& host_memory();

} // namespace troupe
