// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory.hpp"

#include <array>
#include <cstdint>

namespace troupe {

/// What a rank holds tensors for.
enum class memory_use : std::uint8_t {
  parameters,  ///< Of all versions.
  gradients,   ///< Summed for the next update.
  optimizer,   ///< Its state.
  activations, ///< Of microbatches in flight, and their gradients.
  passing,     ///< What is on its way, and what an action needs while it runs.
  checkpoint,  ///< Copies that are being written.
};

inline constexpr int memory_uses = 6;

/// The tensor memory of a rank: all of it, and what each use has of it.
class rank_memory {
public:
  explicit rank_memory(memory_space& where = host_memory()) : all_(where) {}

  memory_account& of(memory_use use) { return of_[static_cast<std::size_t>(use)]; }
  const memory_account& of(memory_use use) const {
    return of_[static_cast<std::size_t>(use)];
  }

  const memory_account& all() const { return all_; }

private:
  memory_account all_;
  std::array<memory_account, memory_uses> of_{
    memory_account{&all_}, memory_account{&all_}, memory_account{&all_},
    memory_account{&all_}, memory_account{&all_}, memory_account{&all_}};
};

} // namespace troupe
