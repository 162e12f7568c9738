// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/optimizers/value_update.hpp"
#include "kernels/stored_matrix.hpp"

#include <cstdint>

struct CUstream_st;

namespace troupe {

// Types of the operations' headers.
struct attention_shape;
struct convolution_shape;
struct embedding_shape;
struct loss_sum;
struct relu_pool_shape;
template <class Scalar>
struct epilogue;
template <class Scalar>
struct gate_table;

} // namespace troupe

/// The operations of the folder kernels/ on a GPU, under the same names. Each
/// operation's header in kernels/ defines the operation; x.cpp is the specification,
/// and x.cu implements x here.
///
/// Functions with a stream launch work and do not wait; a thread that defers launches
/// only lists the work (launch_list.hpp). Arrays are in memory that the GPU accesses,
/// and must not be changed or freed until the stream has run the work. Arguments that
/// are not arrays belong to the caller, and are read during the call. Bits depend on
/// inputs, sizes, strides and the alignment of rows. Sums are fp32 unless a comment
/// says double, in an order that may differ from the CPU's. Functions throw
/// std::runtime_error if a launch that is not deferred fails.
namespace troupe::cuda {

/// A CUDA stream.
using stream_handle = CUstream_st*;

using input = stored_matrix<const float>;
using output = stored_matrix<float>;

struct arrays {
  static void copy(input from, output to, stream_handle stream);
  static void add(const float* from, std::int64_t n, float* to, stream_handle stream);
  static void clear(std::int64_t n, float* to, stream_handle stream);
};

/// Sums over the rows of a matrix, for each column. Parts of many rows are summed by
/// blocks of their own, into scratch memory, and then added in order.
struct column_sums {
  static constexpr std::int64_t rows_a_part = 512;

  static std::int64_t parts(std::int64_t rows) {
    return (rows + rows_a_part - 1) / rows_a_part;
  }

  /// Values of scratch memory for `sums` sums of each column; 0 for one part.
  static std::int64_t space(std::int64_t rows, std::int64_t columns, int sums) {
    return parts(rows) > 1 ? parts(rows) * columns * sums : 0;
  }
};

struct bias {
  static void add_with_residual(matrix<const float> product, const float* bias, input x,
                                output y, stream_handle stream);
  /// \param space scratch memory for one sum of each column (column_sums)
  static void gradient(input dy, float beta, float* dbias, float* space,
                       stream_handle stream);
};

struct epilogues {
  /// Applies the epilogue to a product, and writes c. c may be the product.
  static void finish(matrix<const float> product, const epilogue<float>& end, output c,
                     stream_handle stream);
};

struct relu {
  static void backward(input dy, matrix<const std::uint8_t> mask, output dx,
                       stream_handle stream);
};

struct layer_norm {
  static void forward(input x, const float* gain, const float* bias, output y,
                      float* mean, float* rstd, stream_handle stream);
  static void input_gradient(input x, const float* gain, const float* mean,
                             const float* rstd, input dy, input dresidual, output dx,
                             stream_handle stream);
  /// \param space scratch memory for two sums of each column (column_sums)
  static void weight_gradient(input x, const float* mean, const float* rstd, input dy,
                              float beta, float* dgain, float* dbias, float* space,
                              stream_handle stream);
};

struct embedding {
  using shape = embedding_shape;

  static void forward(const shape& dims, const std::int32_t* tokens, input words,
                      input positions, output y, stream_handle stream);
  /// Copies tokens: to = tokens.
  static void take(const std::int32_t* tokens, std::int64_t n, std::int32_t* to,
                   stream_handle stream);

  /// \param dplaces the gradient of positions; left out if null
  static void gradient(const shape& dims, const std::int32_t* tokens, input dy,
                       float beta, float* dwords, float* dplaces, stream_handle stream);
};

struct cross_entropy {
  /// Computes the gradients, and the loss of each row; sum() adds the rows.
  /// \param correct (R): 1 where the first of the largest logits is the label's, else 0
  static void forward(matrix<float> logits, const std::int32_t* labels, float scale,
                      output gradient, float* row_losses, std::int32_t* correct,
                      stream_handle stream);
  static void prepare(matrix<const float> logits, std::int64_t first,
                      const std::int32_t* labels, float* local_facts,
                      stream_handle stream);
  static void finish(matrix<float> logits, std::int64_t first,
                     const std::int32_t* labels, const float* all_facts, int shards,
                     int local_shard, float scale, output gradient, float* row_losses,
                     std::int32_t* correct, stream_handle stream);

  /// Sums the losses and the numbers of correct rows in double, and writes `to`.
  static void sum(const float* row_losses, const std::int32_t* correct,
                  std::int64_t rows, loss_sum* to, stream_handle stream);
};

struct optimizers {
  static void update_values(const value_update& update, float scale,
                            const update_arrays& arrays, std::int64_t n,
                            stream_handle stream);

  /// Sums the squares of n values in double.
  /// \param partial sum_parts(n) values, filled with sums of parts
  /// \param sum one value, filled
  static void sum_of_squares(const float* x, std::int64_t n, double* partial,
                             double* sum, stream_handle stream);
  /// Number of parts of n values, each with a sum in `partial`. Launches nothing.
  static std::int64_t sum_parts(std::int64_t n);
};

struct attention {
  /// Needs no scratch memory: scores stay in registers and shared memory.
  /// \throws std::runtime_error for the sizes that by_tile() refuses
  static void forward(const attention_shape& dims, input qkv, output y, float* log_sum,
                      stream_handle stream);

  /// \param space scratch memory (B, H, T)
  /// \throws std::runtime_error for the sizes that by_tile() refuses
  static void backward(const attention_shape& dims, input qkv, input y,
                       const float* log_sum, input dy, output dqkv, float* space,
                       stream_handle stream);
};

struct top_k_gate {
  static void forward(const gate_table<float>& to, stream_handle stream);
  static void backward(const gate_table<float>& table, const float* dweights,
                       float balance, float* dlogits, stream_handle stream);
};

struct dispatch {
  static void send(const gate_table<float>& table, matrix<const float> x, float* rows,
                   stream_handle stream);
  static void combine(const gate_table<float>& table, const float* rows,
                      matrix<float> y, stream_handle stream);
  static void combine_gradient(const gate_table<float>& table, const float* rows,
                               matrix<const float> dy, float* drows, float* dweights,
                               stream_handle stream);
  static void send_gradient(const gate_table<float>& table, const float* drows,
                            matrix<float> dx, stream_handle stream);
};

struct convolution {
  static void forward(const convolution_shape& dims, const float* x, const float* w,
                      const float* bias, float* y, stream_handle stream);
  static void input_gradient(const convolution_shape& dims, const float* w,
                             const float* dy, float* dx, stream_handle stream);
  static void weight_gradient(const convolution_shape& dims, const float* x,
                              const float* dy, float beta, float* dw, float* dbias,
                              stream_handle stream);
};

struct relu_pool {
  using shape = relu_pool_shape;

  static void forward(const shape& dims, const float* x, output y, std::uint8_t* choice,
                      stream_handle stream);
  static void backward(const shape& dims, input dy, const std::uint8_t* choice,
                       float* dx, stream_handle stream);
};

} // namespace troupe::cuda
