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
/// until the queue has come so far. Values that are not arrays are the caller's. Bits
/// depend on inputs and sizes, and on whether rows begin at multiples of 16 bytes. Sums
/// are fp32, in an order of the GPU's own.
/// All throw std::runtime_error if they cannot be launched.
namespace troupe::cuda {

/// A stream of CUDA's.
using queue = CUstream_st*;

using input = stored_matrix<const float>;
using output = stored_matrix<float>;

struct arrays {
  static void copy(input from, output to, queue on);
  static void add(const float* from, std::int64_t n, float* to, queue on);
  static void clear(std::int64_t n, float* to, queue on);
};

struct bias {
  static void add_with_residual(matrix<const float> product, const float* bias, input x,
                                output y, queue on);
  static void gradient(input dy, float beta, float* dbias, queue on);
};

struct epilogues {
  /// Turns a product into what the epilogue makes of it. c may be the product.
  static void finish(matrix<const float> product, const epilogue<float>& end, output c,
                     queue on);
};

struct relu {
  static void backward(input dy, matrix<const std::uint8_t> mask, output dx, queue on);
};

struct layer_norm {
  static void forward(input x, const float* gain, const float* bias, output y,
                      float* mean, float* rstd, queue on);
  static void input_gradient(input x, const float* gain, const float* mean,
                             const float* rstd, input dy, input dresidual, output dx,
                             queue on);
  static void weight_gradient(input x, const float* mean, const float* rstd, input dy,
                              float beta, float* dgain, float* dbias, queue on);
};

struct embedding {
  using shape = embedding_shape;

  static void forward(const shape& dims, const std::int32_t* tokens, input words,
                      input places, output y, queue on);
  static void gradient(const shape& dims, const std::int32_t* tokens, input dy,
                       float beta, float* dwords, float* dplaces, queue on);
};

struct cross_entropy {
  /// \param correct (R): 1 where the largest logit is the label's, else 0
  static void forward(matrix<float> logits, const std::int32_t* labels, float scale,
                      float* row_losses, std::int32_t* correct, queue on);
  static void tell(matrix<float> logits, std::int64_t first, const std::int32_t* labels,
                   float* own, queue on);
  static void finish(matrix<float> exponentials, std::int64_t first,
                     const std::int32_t* labels, const float* all, int shards, int own,
                     float scale, float* row_losses, std::int32_t* correct, queue on);
};

struct optimizers {
  static void adamw(const adamw_step& how, float scale, const float* gradient,
                    const float* from, float* to, float* mean, float* square,
                    std::int64_t n, queue on);
  static void sgd(const sgd_step& how, float scale, const float* gradient,
                  const float* from, float* to, float* velocity, std::int64_t n,
                  queue on);

  /// \param partial sum_parts(n) values, left as they are made \param sum one value
  static void sum_of_squares(const float* x, std::int64_t n, double* partial,
                             double* sum, queue on);
  static std::int64_t sum_parts(std::int64_t n);
};

struct attention {
  /// Without scratch: scores stay in registers and shared memory.
  static void forward(const attention_shape& dims, input qkv, output y, float* log_sum,
                      queue on);

  /// \param space (B, H, T)
  static void backward(const attention_shape& dims, input qkv, input y,
                       const float* log_sum, input dy, output dqkv, float* space,
                       queue on);
};

struct top_k_gate {
  static void forward(const gate_table<float>& to, queue on);
  static void backward(const gate_table<float>& of, const float* dweights,
                       float balance, float* dlogits, queue on);
};

struct dispatch {
  static void send(const gate_table<float>& by, matrix<const float> x, float* rows,
                   queue on);
  static void combine(const gate_table<float>& by, const float* rows, matrix<float> y,
                      queue on);
  static void combine_gradient(const gate_table<float>& by, const float* rows,
                               matrix<const float> dy, float* drows, float* dweights,
                               queue on);
  static void send_gradient(const gate_table<float>& by, const float* drows,
                            matrix<float> dx, queue on);
};

struct convolution {
  static void forward(const convolution_shape& dims, const float* x, const float* w,
                      const float* bias, float* y, queue on);
  static void input_gradient(const convolution_shape& dims, const float* w,
                             const float* dy, float* dx, queue on);
  static void weight_gradient(const convolution_shape& dims, const float* x,
                              const float* dy, float beta, float* dw, float* dbias,
                              queue on);
};

struct relu_pool {
  using shape = relu_pool_shape;

  static void forward(const shape& dims, const float* x, output y, std::uint8_t* choice,
                      queue on);
  static void backward(const shape& dims, input dy, const std::uint8_t* choice,
                       float* dx, queue on);
};

} // namespace troupe::cuda
