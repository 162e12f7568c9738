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

/// A fixed number of buffers of one size and kind of value, allocated together from the
/// space of an account. Thread-safe.
class pool {
public:
  /// \param name the pool's name in errors: "activations of stage 2"
  /// \param count number of buffers
  /// \param values number of values of each buffer
  /// \param account outlives the pool
  /// \throws std::bad_alloc
  /// \throws std::runtime_error if a GPU fails for another reason
  pool(std::string name, int count, std::int64_t values, memory_account& account,
       element kind = element::fp32);
  /// Waits up to about a second for handles that other threads still hold.
  ~pool();

  /// Returns a free buffer, with zeros or the values of the last use.
  /// \throws std::logic_error if all buffers are in use: the schedule's bound is
  /// broken, or a user's relay keeps handles
  buffer acquire();

  /// Returns a free buffer; an empty handle if all buffers are in use.
  buffer acquire_if_free();

  int size() const { return static_cast<int>(blocks_.size()); }

private:
  friend class buffer;
  void give_back(buffer::block* b);

  std::string name_;
  std::int64_t bytes_each_;
  memory_account& account_;
  tensor_memory memory_;
  std::vector<std::unique_ptr<buffer::block>> blocks_;
  std::mutex lock_;
  std::vector<buffer::block*> free_;
};

} // namespace troupe
