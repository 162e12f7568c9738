// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/attention.hpp"
#include "kernels/stored_matrix.hpp"

#include <cstdint>
#include <memory>
#include <optional>

struct CUstream_st;

namespace troupe::cuda {

/// Attention of one GPU by cuDNN, which is loaded when the first object is made. A plan
/// is made once for each combination of sizes and strides, and lives as long as the
/// object, because graphs of launches refer to the plan's kernels. The backward is
/// deterministic. For one thread at a time, and for the GPU that is current in the
/// constructor. Arrays are as library_can_attend() demands.
class cudnn_attention {
public:
  /// \throws std::runtime_error if cuDNN is not installed, too old or unusable
  cudnn_attention();
  ~cudnn_attention();

  /// Version of the installed library: 91900 for 9.19.0.
  std::int64_t version() const;

  /// Bytes of work space for a forward; nothing if cuDNN has no plan for the sizes, or
  /// the plan needs more than most_space. The first call for a combination takes up to
  /// some seconds. No stream may capture meanwhile.
  std::optional<std::int64_t> forward_space(const attention_shape& dims,
                                            const stored_matrix<const float>& qkv,
                                            const stored_matrix<const float>& y);

  /// Bytes of work space for a backward; otherwise as forward_space().
  std::optional<std::int64_t> backward_space(const attention_shape& dims,
                                             const stored_matrix<const float>& qkv,
                                             const stored_matrix<const float>& y,
                                             const stored_matrix<const float>& dy,
                                             const stored_matrix<const float>& dqkv);

  /// Most bytes of work space of a plan. On an H100 a backward stores the gradients of
  /// all scores: B H T T values of bf16.
  static constexpr std::int64_t most_space = std::int64_t{1} << 30;

  /// Launches attention<float>::forward(). Waits for nothing and allocates nothing on
  /// the GPU, so a stream can capture the launch.
  /// \param workspace memory of the GPU, of forward_space() bytes
  /// \pre forward_space() returned a number for these sizes and strides
  /// \throws std::runtime_error if the launch fails
  void forward(const attention_shape& dims, const stored_matrix<const float>& qkv,
               const stored_matrix<float>& y, float* log_sum, void* workspace,
               CUstream_st* stream);

  /// Launches attention<float>::backward(); otherwise as forward().
  /// \param workspace memory of the GPU, of backward_space() bytes
  /// \pre backward_space() returned a number for these sizes and strides
  void backward(const attention_shape& dims, const stored_matrix<const float>& qkv,
                const stored_matrix<const float>& y, const float* log_sum,
                const stored_matrix<const float>& dy, const stored_matrix<float>& dqkv,
                void* workspace, CUstream_st* stream);

private:
  struct state;

  std::unique_ptr<state> state_;
};

} // namespace troupe::cuda
