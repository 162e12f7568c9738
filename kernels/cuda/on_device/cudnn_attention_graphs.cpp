// SPDX-License-Identifier: BSD-3-Clause
// cuDNN runs a graph of operations as one attention if its engines know the graph. The
// graphs here have the operations, in the order and with the types, that NVIDIA's cuDNN
// frontend 1.2x builds. Intermediate tensors, such as scores (B, H, T, T), are in no
// memory.

#include "kernels/cuda/on_device/cudnn_attention_graphs.hpp"

namespace troupe::cuda::cudnn {

namespace {

tensor_sizes transposed(const tensor_sizes& sizes) {
  return {sizes[0], sizes[1], sizes[3], sizes[2]};
}

/// The tensors that forward and backward have in common.
struct attention_graph : graph {
  explicit attention_graph(const attention_sizes& of)
    : shape(of),
      heads{of.sequences, of.heads, of.length, of.width},
      rows{of.sequences, of.heads, of.length, 1},
      scores{of.sequences, of.heads, of.length, of.length},
      scale(scalar(id_scale)),
      hidden(scalar(id_hidden)),
      log_sum(in_memory(id_log_sum, CUDNN_DATA_FLOAT, rows, dense_strides(rows))) {
    // nop
  }

  tensor_sizes strides_of(std::int64_t stride) const {
    return shape.by_position
             ? tensor_sizes{stride, shape.width, shape.sequences * stride, 1}
             : tensor_sizes{shape.length * stride, shape.width, stride, 1};
  }

  /// Columns of all heads in rows of `stride` values: (B, H, T, C/H).
  tensor columns(attention_tensor number, std::int64_t stride) {
    return in_memory(number, CUDNN_DATA_BFLOAT16, heads, strides_of(stride));
  }

  /// The transposes of the columns: (B, H, C/H, T).
  tensor columns_t(attention_tensor number, std::int64_t stride) {
    return in_memory(number, CUDNN_DATA_BFLOAT16, transposed(heads),
                     transposed(strides_of(stride)));
  }

  /// Scores, with -infinity for later keys.
  tensor masked(const tensor& all) {
    const auto query = index(all, 2), key = index(all, 3);
    return select(all, hidden,
                  apply(CUDNN_POINTWISE_CMP_GE, query, key, CUDNN_DATA_BOOLEAN));
  }

  /// q k^T scale
  tensor scaled_scores(const tensor& q, const tensor& k_t) {
    const auto product = intermediate(scores);
    multiply(q, k_t, product);
    return apply(CUDNN_POINTWISE_MUL, product, scale);
  }

  attention_sizes shape;
  tensor_sizes heads, rows, scores;
  tensor scale, hidden, log_sum;
};

} // namespace

graph forward_graph(const attention_sizes& shape) {
  attention_graph to{shape};
  const auto q = to.columns(id_q, shape.qkv_stride),
             v = to.columns(id_v, shape.qkv_stride),
             y = to.columns(id_y, shape.y_stride),
             k_t = to.columns_t(id_k, shape.qkv_stride);
  const auto scores = to.masked(to.scaled_scores(q, k_t));
  const auto most = to.intermediate(to.rows), sum = to.intermediate(to.rows),
             weights = to.intermediate(to.scores, CUDNN_DATA_BFLOAT16);
  to.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
  const auto powers =
    to.apply(CUDNN_POINTWISE_EXP, to.apply(CUDNN_POINTWISE_SUB, scores, most));
  to.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
  const auto log = to.apply(CUDNN_POINTWISE_LOG, sum);
  to.apply(CUDNN_POINTWISE_ADD, most, &log, to.log_sum);
  to.apply(CUDNN_POINTWISE_DIV, powers, &sum, weights);
  to.multiply(weights, v, y);
  return to;
}

/// The gradients of queries are not summed in memory by several blocks, so the engine
/// is deterministic.
graph backward_graph(const attention_sizes& shape) {
  attention_graph to{shape};
  const auto q = to.columns(id_q, shape.qkv_stride),
             y = to.columns(id_y, shape.y_stride),
             dy = to.columns(id_dy, shape.dy_stride),
             dq = to.columns(id_dq, shape.dqkv_stride),
             dk = to.columns(id_dk, shape.dqkv_stride),
             dv = to.columns(id_dv, shape.dqkv_stride),
             k_t = to.columns_t(id_k, shape.qkv_stride),
             v_t = to.columns_t(id_v, shape.qkv_stride);
  const auto dots =
    to.in_memory(id_dots, CUDNN_DATA_FLOAT, to.rows, dense_strides(to.rows));
  const auto products = to.intermediate(
    to.heads, {shape.heads * shape.length * shape.width, shape.length * shape.width,
               shape.heads * shape.width, 1});
  const auto row_sums = to.intermediate(to.rows), factor = to.scalar(id_one);
  to.apply(CUDNN_POINTWISE_MUL, dy, &y, products);
  to.reduce(CUDNN_REDUCE_TENSOR_ADD, products, row_sums);
  to.apply(CUDNN_POINTWISE_MUL, row_sums, &factor, dots);

  const auto scores =
    to.apply(CUDNN_POINTWISE_SUB, to.scaled_scores(q, k_t), to.log_sum);
  const auto weights = to.apply(CUDNN_POINTWISE_EXP, to.masked(scores));
  const auto transpose = [&](const tensor& x) {
    const auto result = to.intermediate(to.scores, transposed(dense_strides(to.scores)),
                                        CUDNN_DATA_BFLOAT16);
    to.reshape(x, result);
    return result;
  };
  to.multiply(transpose(weights), dy, dv);

  const auto dweights = to.intermediate(to.scores);
  to.multiply(dy, v_t, dweights);
  const auto dscores =
    to.apply(CUDNN_POINTWISE_MUL,
             to.apply(CUDNN_POINTWISE_MUL,
                      to.apply(CUDNN_POINTWISE_SUB, dweights, dots), weights),
             to.scale);
  to.multiply(transpose(dscores), q, dk);
  const auto k =
    to.intermediate(transposed(k_t.dims), transposed(k_t.strides), CUDNN_DATA_BFLOAT16);
  to.reshape(k_t, k);
  to.multiply(dscores, k, dq);
  return to;
}

} // namespace troupe::cuda::cudnn
