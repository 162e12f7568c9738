// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>

struct XXH3_state_s;

namespace troupe {

/// A 64-bit XXH3 checksum of bytes that arrive in several calls. The checksum detects
/// damage, not malice.
class running_checksum {
public:
  /// \throws std::bad_alloc
  running_checksum();

  /// Starts again, with no bytes.
  void restart();
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

private:
  struct release {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, release> state_;
};

} // namespace troupe
