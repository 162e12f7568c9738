// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory_space.hpp"

#include <cstddef>
#include <type_traits>
#include <vector>

namespace troupe {

/// Allocates the values of a container from a memory space, so that kernels of a
/// processor reach the values. A container that is copied, moved or swapped from
/// another one uses that container's space. The space must outlive the container.
template <class Value>
class space_allocator {
public:
  using value_type = Value;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  explicit space_allocator(memory_space& space) : space_(&space) {}

  template <class Other>
  explicit space_allocator(const space_allocator<Other>& source)
    : space_(&source.space()) {
    // nop
  }

  memory_space& space() const { return *space_; }

  Value* allocate(std::size_t values) {
    return static_cast<Value*>(space_->allocate(bytes_of(values)));
  }

  void deallocate(Value* values, std::size_t count) noexcept {
    space_->deallocate(values, bytes_of(count));
  }

  bool operator==(const space_allocator&) const = default;

private:
  static std::int64_t bytes_of(std::size_t values) {
    return static_cast<std::int64_t>(values * sizeof(Value));
  }

  memory_space* space_;
};

/// A vector in a memory space.
template <class Value>
using vector_in = std::vector<Value, space_allocator<Value>>;

} // namespace troupe
