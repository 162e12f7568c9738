// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// What the values of a tensor are.
enum class element : std::uint8_t {
  fp32,
  int32, ///< Tokens and labels.
};

constexpr std::int64_t bytes_of(element what) {
  switch (what) {
  case element::fp32:
    return sizeof(float);
  case element::int32:
    return sizeof(std::int32_t);
  }
  return 0;
}

/// A place that memory of tensors is taken from: the machine's, or a device's. Safe to
/// use from several threads. Outlives what is taken from it.
class memory_space {
public:
  virtual ~memory_space() = default;

  /// Zeroed, and aligned to a cache line. \throws std::bad_alloc
  virtual void* take(std::int64_t bytes) = 0;

  /// Says what memory that was taken here is for, to whoever reports on it.
  virtual void name(const void* /*memory*/, const std::string& /*what*/) {}

  /// \pre taken here, of this size
  virtual void give_back(void* memory, std::int64_t bytes) noexcept = 0;
};

/// This machine's memory, in huge pages where they fit.
memory_space& host_memory();

} // namespace troupe
