// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory.hpp"

#include <array>
#include <cstdint>

namespace troupe {

/// The uses of a rank's tensor memory.
enum class memory_use : std::uint8_t {
  parameters, ///< Parameters of all versions.
  gradients,  ///< Gradients summed for the next update.
  optimizer,  ///< Optimizer state.
  /// Samples and activations of microbatches in flight, the gradients of activations,
  /// and messages between neighbouring stages.
  activations,
  /// Messages of meetings and updates under way, buffers of running actions, packed
  /// matrices, and copies for evaluations.
  passing,
  checkpoint, ///< Copies for checkpoints, and kept steps.
};

inline constexpr int memory_uses = 6; ///< Number of values of memory_use.

/// Accounts of a rank's tensor memory, in bytes: one for the whole rank, and one for
/// each use.
class rank_memory {
public:
  /// \param where outlives this object
  explicit rank_memory(memory_space& where = host_memory()) : total_(where) {}

  memory_account& account(memory_use use) {
    return accounts_[static_cast<std::size_t>(use)];
  }
  const memory_account& account(memory_use use) const {
    return accounts_[static_cast<std::size_t>(use)];
  }

  const memory_account& total() const { return total_; }

private:
  memory_account total_;
  std::array<memory_account, memory_uses> accounts_{
    memory_account{&total_}, memory_account{&total_}, memory_account{&total_},
    memory_account{&total_}, memory_account{&total_}, memory_account{&total_}};
};

} // namespace troupe
