// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Forwards without backwards, for evaluation and generation.

#include "kernels/memory.hpp"
#include "models/network.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Buffers for forwards without backwards. Layers run one after another, and each layer
/// overwrites the saved values of the previous layer. One thread at a time may use the
/// buffers.
class forward_buffers {
public:
  /// \param layers the layers to run; for sequences of several lengths, the layers of
  /// the greatest length
  /// \param samples largest number of samples of a forward
  /// \param threads of the streams
  /// \param account counts the bytes; not kept, but the account's memory space outlives
  /// this object
  forward_buffers(const layer_list<float>& layers, std::int64_t samples, int threads,
                  memory_account& account);

  /// Bytes that forward_buffers with these arguments take.
  static std::int64_t bytes(const layer_list<float>& layers, std::int64_t samples,
                            int threads);

  /// Launches the layers on the stream of `in`: the first layer reads the input of
  /// `in`, the last writes in.y.
  /// \pre the samples of `in`, and the buffers of `layers`, are at most those of the
  /// constructor
  /// \param in the frame of all layers: samples, tokens or x, y, the stream, and with
  /// `caches` also `past`
  /// \param parameters a bucket for each of `layers`
  /// \param caches one cache per layer if one sequence continues; else empty
  void forward(const layer_list<float>& layers, const frame<float>& in,
               std::span<const float* const> parameters,
               std::span<float* const> caches = {}) const;

private:
  tensor_memory saved_, scratch_;
  tensor_memory between_[2]; // activations between two layers
};

} // namespace troupe
