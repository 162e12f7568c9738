// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/on_host/memory_watch.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace troupe::on_host {

/// The shared memory of a block. All threads find an array by an address that stands
/// for the array's declaration in the source. There are gaps between arrays.
class shared_memory {
public:
  /// Starts a block, and forgets earlier arrays.
  /// \param watch may be null; must outlive the next call of begin() or forget()
  void begin(memory_watch* watch);
  /// Forgets all arrays, also in the watch.
  void forget();

  /// Returns an array, which is poisoned when the first thread of a block asks. Null if
  /// shared memory is too small. Valid until the next call of begin() or forget().
  /// \param where address that identifies the array
  /// \param value bytes of one element
  void* array(const char* name, const void* where, std::int64_t bytes,
              std::int64_t value);

  /// Bytes of all arrays except the one that array() made for the address `where`.
  std::int64_t bytes_without(const void* where) const;

private:
  struct array_range {
    std::int64_t offset, bytes;
  };

  static constexpr std::int64_t most = 227 * 1024; // of compute capability 9.0

  memory_watch* watch_ = nullptr;
  std::vector<unsigned char> memory_ = std::vector<unsigned char>(most);
  std::map<const void*, array_range> arrays_;
  std::int64_t used_ = 0;
};

} // namespace troupe::on_host
