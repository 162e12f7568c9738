// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/on_device/cudnn_backend.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// Graphs of operations by cuDNN, and plans that run graphs. Functions throw as those of
// cudnn_backend.hpp.

namespace troupe::cuda::cudnn {

using tensor_sizes = std::array<std::int64_t, 4>;

/// Strides of a tensor without gaps, the last dimension innermost.
tensor_sizes dense_strides(const tensor_sizes& dims);

/// A tensor of a graph. The `id` of in_memory() or scalar() binds a tensor to memory in
/// plan::run(); intermediate tensors have no memory.
struct tensor {
  descriptor described;
  tensor_sizes dims, strides;
};

/// Operations on tensors of four dimensions. Sums are fp32; intermediate tensors are
/// fp32 unless `type` is another type.
class graph {
public:
  /// A tensor in the GPU's memory, at an address that is a multiple of 16 bytes.
  tensor in_memory(std::int64_t id, cudnnDataType_t type, const tensor_sizes& dims,
                   const tensor_sizes& strides);

  /// A scalar of fp32 in this machine's memory.
  tensor scalar(std::int64_t id);

  /// An intermediate tensor, which is in no memory.
  tensor intermediate(const tensor_sizes& dims,
                      cudnnDataType_t type = CUDNN_DATA_FLOAT);
  tensor intermediate(const tensor_sizes& dims, const tensor_sizes& strides,
                      cudnnDataType_t type = CUDNN_DATA_FLOAT);

  /// product = a b, for each index of the first two dimensions.
  void multiply(const tensor& a, const tensor& b, const tensor& product);

  /// Sums or maxima over the dimensions in which `result` has size 1.
  void reduce(cudnnReduceTensorOp_t operation, const tensor& x, const tensor& result);

  /// The same values under other dimensions or strides.
  void reshape(const tensor& x, const tensor& result);

  /// result = mode(x), with dims and strides of x. Returns the result.
  tensor apply(cudnnPointwiseMode_t mode, const tensor& x);
  /// result = mode(x, b). In a dimension of size 1, b repeats the value.
  tensor apply(cudnnPointwiseMode_t mode, const tensor& x, const tensor& b,
               cudnnDataType_t type = CUDNN_DATA_FLOAT);
  /// Writes mode(x, b) to `result`; mode(x) if b is null.
  void apply(cudnnPointwiseMode_t mode, const tensor& x, const tensor* b,
             const tensor& result);
  /// result = condition ? x : b.
  tensor select(const tensor& x, const tensor& b, const tensor& condition);
  /// The index of each value of x in dimension `axis`, as int32.
  tensor index(const tensor& x, std::int64_t axis);

  const std::vector<descriptor>& operations() const { return operations_; }

private:
  struct pointwise;

  tensor kept(descriptor& made, const tensor_sizes& dims, const tensor_sizes& strides);
  void add(const pointwise& chosen, const tensor& x, const tensor* b,
           const tensor* condition, const tensor& result);

  std::int64_t next_id_ = 1000; // of intermediate tensors
  std::vector<descriptor> operations_;
  std::vector<descriptor> parts_; // of operations: tensors and modes
};

/// The first algorithm, of cuDNN's recommendations for a graph on one GPU, that cuDNN
/// can prepare and that computes the same bits each time.
class plan {
public:
  /// \param handle the GPU's handle; must outlive the plan
  /// \throws std::runtime_error if cuDNN has no such algorithm
  plan(const graph& operations, cudnnHandle_t handle);

  /// Bytes of work space for run().
  std::int64_t workspace() const { return workspace_; }

  /// Launches the graph on a stream. Waits for nothing, and allocates nothing on the
  /// GPU.
  /// \param arrays identifiers and addresses of all tensors in memory, and of all
  /// scalars
  /// \param workspace memory of the GPU, of workspace() bytes
  void run(const std::vector<std::pair<std::int64_t, const void*>>& arrays,
           void* workspace, cudaStream_t stream) const;

private:
  cudnnHandle_t handle_;
  descriptor plan_;
  std::int64_t workspace_ = 0;
};

} // namespace troupe::cuda::cudnn
