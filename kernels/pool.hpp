// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/buffer.hpp"
#include "kernels/memory.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {

/// A fixed number of buffers of one size and kind of value, all taken at once from the
/// space of an account. Thread-safe.
class pool {
public:
  /// \param what names the pool in errors: "activations of stage 2"
  pool(std::string what, int count, std::int64_t values, memory_account& account,
       element kind = element::fp32);
  ~pool();

  /// A buffer nobody holds.
  /// \throws std::logic_error if all are held: the schedule's bound is broken
  buffer acquire();

  /// The same; empty if all are held.
  buffer acquire_if_free();

  int size() const { return static_cast<int>(blocks_.size()); }

private:
  friend class buffer;
  void give_back(buffer::block* b);

  std::string what_;
  std::int64_t bytes_each_;
  memory_account& account_;
  tensor_memory memory_;
  std::vector<std::unique_ptr<buffer::block>> blocks_;
  std::mutex lock_;
  std::vector<buffer::block*> free_;
};

} // namespace troupe
