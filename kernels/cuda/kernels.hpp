// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"

#include <cstdint>

struct CUstream_st;

namespace troupe {

// Of the operations' headers.
struct adamw_step;
struct attention_shape;
struct convolution_shape;
struct embedding_shape;
struct loss_sum;
struct relu_pool_shape;
struct sgd_step;
template <class Scalar>
struct epilogue;
template <class Scalar>
struct gate_table;

} // namespace troupe

/// What a GPU computes: the operations of this folder's headers, which say what each of
/// them does, under the same names. x.cu stands beside x.cpp, which specifies it.
///
/// Here they are launched, not waited for: arrays are the GPU's, and stay as they are
/// until the stream has come so far. Values that are not arrays are the caller's. Bits
/// depend on inputs and sizes, and on whether rows begin at multiples of 16 bytes. Sums
/// are fp32, in an order of the GPU's own.
/// All throw std::runtime_error if they cannot be launched.
namespace troupe::cuda {

/// A stream of CUDA's.
using stream_handle = CUstream_st*;

using input = stored_matrix<const float>;
using output = stored_matrix<float>;

struct arrays {
  static void copy(input from, output to, stream_handle on);
  static void add(const float* from, std::int64_t n, float* to, stream_handle on);
  static void clear(std::int64_t n, float* to, stream_handle on);
};

struct bias {
  static void add_with_residual(matrix<const float> product, const float* bias, input x,
                                output y, stream_handle on);
  static void gradient(input dy, float beta, float* dbias, stream_handle on);
};

struct epilogues {
  /// Turns a product into what the epilogue makes of it. c may be the product.
  static void finish(matrix<const float> product, const epilogue<float>& end, output c,
                     stream_handle on);
};

struct relu {
  static void backward(input dy, matrix<const std::uint8_t> mask, output dx,
                       stream_handle on);
};

struct layer_norm {
  static void forward(input x, const float* gain, const float* bias, output y,
                      float* mean, float* rstd, stream_handle on);
  static void input_gradient(input x, const float* gain, const float* mean,
                             const float* rstd, input dy, input dresidual, output dx,
                             stream_handle on);
  static void weight_gradient(input x, const float* mean, const float* rstd, input dy,
                              float beta, float* dgain, float* dbias, stream_handle on);
};

struct embedding {
  using shape = embedding_shape;

  static void forward(const shape& dims, const std::int32_t* tokens, input words,
                      input places, output y, stream_handle on);
  /// to = tokens.
  static void take(const std::int32_t* tokens, std::int64_t n, std::int32_t* to,
                   stream_handle on);

  static void gradient(const shape& dims, const std::int32_t* tokens, input dy,
                       float beta, float* dwords, float* dplaces, stream_handle on);
};

struct cross_entropy {
  /// \param correct (R): 1 where the first of the largest logits is the label's, else 0
  static void forward(matrix<float> logits, const std::int32_t* labels, float scale,
                      float* row_losses, std::int32_t* correct, stream_handle on);
  static void tell(matrix<float> logits, std::int64_t first, const std::int32_t* labels,
                   float* own, stream_handle on);
  static void finish(matrix<float> exponentials, std::int64_t first,
                     const std::int32_t* labels, const float* all, int shards, int own,
                     float scale, float* row_losses, std::int32_t* correct,
                     stream_handle on);

  /// What rows say, added up in double.
  static void sum(const float* row_losses, const std::int32_t* correct,
                  std::int64_t rows, loss_sum* to, stream_handle on);
};

struct optimizers {
  static void adamw(const adamw_step& how, float scale, const float* gradient,
                    const float* from, float* to, float* mean, float* square,
                    std::int64_t n, stream_handle on);
  static void sgd(const sgd_step& how, float scale, const float* gradient,
                  const float* from, float* to, float* velocity, std::int64_t n,
                  stream_handle on);

  /// \param partial sum_parts(n) values, left as they are made \param sum one value
  static void sum_of_squares(const float* x, std::int64_t n, double* partial,
                             double* sum, stream_handle on);
  static std::int64_t sum_parts(std::int64_t n);
};

struct attention {
  /// Without scratch: scores stay in registers and shared memory.
  static void forward(const attention_shape& dims, input qkv, output y, float* log_sum,
                      stream_handle on);

  /// \param space (B, H, T)
  static void backward(const attention_shape& dims, input qkv, input y,
                       const float* log_sum, input dy, output dqkv, float* space,
                       stream_handle on);
};

struct top_k_gate {
  static void forward(const gate_table<float>& to, stream_handle on);
  static void backward(const gate_table<float>& of, const float* dweights,
                       float balance, float* dlogits, stream_handle on);
};

struct dispatch {
  static void send(const gate_table<float>& by, matrix<const float> x, float* rows,
                   stream_handle on);
  static void combine(const gate_table<float>& by, const float* rows, matrix<float> y,
                      stream_handle on);
  static void combine_gradient(const gate_table<float>& by, const float* rows,
                               matrix<const float> dy, float* drows, float* dweights,
                               stream_handle on);
  static void send_gradient(const gate_table<float>& by, const float* drows,
                            matrix<float> dx, stream_handle on);
};

struct convolution {
  static void forward(const convolution_shape& dims, const float* x, const float* w,
                      const float* bias, float* y, stream_handle on);
  static void input_gradient(const convolution_shape& dims, const float* w,
                             const float* dy, float* dx, stream_handle on);
  static void weight_gradient(const convolution_shape& dims, const float* x,
                              const float* dy, float beta, float* dw, float* dbias,
                              stream_handle on);
};

struct relu_pool {
  using shape = relu_pool_shape;

  static void forward(const shape& dims, const float* x, output y, std::uint8_t* choice,
                      stream_handle on);
  static void backward(const shape& dims, input dy, const std::uint8_t* choice,
                       float* dx, stream_handle on);
};

} // namespace troupe::cuda
