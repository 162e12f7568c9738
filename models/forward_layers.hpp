// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory.hpp"
#include "models/network.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Room for forwards without backwards: layers run one after another in it, and what
/// one has saved is overwritten by the next. For one thread at a time.
class forward_room {
public:
  /// \param layers those that take most, as at the greatest length
  /// \param samples of a forward, at most \param threads of the streams
  forward_room(const layer_list<float>& layers, std::int64_t samples, int threads,
               memory_account& account);

  /// Bytes that such a room takes.
  static std::int64_t bytes(const layer_list<float>& layers, std::int64_t samples,
                            int threads);

  /// Runs layers, the first on what `in` says goes into it, the last into in.y. \param
  /// in the frame of all: samples, tokens or x, y, on \param parameters a bucket a
  /// layer \param caches of each layer, where one sequence goes on; else empty
  void forward(const layer_list<float>& layers, const frame<float>& in,
               std::span<const float* const> parameters,
               std::span<float* const> caches = {}) const;

private:
  tensor_memory saved_, scratch_;
  tensor_memory between_[2]; // what two layers hand each other
};

} // namespace troupe
