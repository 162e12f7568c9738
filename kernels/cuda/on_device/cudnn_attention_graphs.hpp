// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/on_device/cudnn_graph.hpp"

#include <compare>
#include <cstdint>

// The graphs of operations that cuDNN runs as one attention.

namespace troupe::cuda::cudnn {

/// Identifiers of the tensors in memory.
enum attention_tensor : std::int64_t {
  id_q = 1,
  id_k,
  id_v,
  id_y,
  id_log_sum,
  id_dy,
  id_dq,
  id_dk,
  id_dv,
  id_dots,   // dy . y of each row: (B, H, T), fp32 scratch
  id_scale,  // of scores
  id_hidden, // the score of a later key: -infinity
  id_one,
};

/// Sizes and strides of an attention. In a forward, dy_stride and dqkv_stride are 0.
struct attention_sizes {
  std::int64_t sequences, length, heads, width; // B, T, H, and the width of a head
  bool by_position;
  std::int64_t qkv_stride, y_stride, dy_stride, dqkv_stride;

  bool is_backward() const { return dqkv_stride != 0; }

  auto operator<=>(const attention_sizes&) const = default;
};

/// Reads id_q, id_k, id_v, id_scale and id_hidden; writes id_y and id_log_sum.
graph forward_graph(const attention_sizes& sizes);

/// Reads all other tensors; writes id_dq, id_dk, id_dv and id_dots.
graph backward_graph(const attention_sizes& sizes);

} // namespace troupe::cuda::cudnn
