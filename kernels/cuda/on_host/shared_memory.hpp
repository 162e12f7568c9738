// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/on_host/memory_watch.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace troupe::on_host {

/// The shared memory of a block: arrays that its threads all get by the same place in
/// the source, with gaps between them.
class shared_memory {
public:
  /// A block begins. \param watch may be null
  void begin(memory_watch* watch);
  void forget();

  /// Poisoned when the first thread asks for it. Null where there is no room.
  /// \param where the same one is the same array
  void* array(const char* name, const void* where, std::int64_t bytes,
              std::int64_t value);

  /// Bytes of all arrays but that one.
  std::int64_t bytes_without(const void* where) const;

private:
  struct place {
    std::int64_t offset, bytes;
  };

  static constexpr std::int64_t most = 227 * 1024; // of compute capability 9.0

  memory_watch* watch_ = nullptr;
  std::vector<unsigned char> memory_ = std::vector<unsigned char>(most);
  std::map<const void*, place> places_;
  std::int64_t used_ = 0;
};

} // namespace troupe::on_host
