// SPDX-License-Identifier: BSD-3-Clause
// Attention by cuDNN in a build without cuDNN: the constructor fails.

#include "kernels/cuda/on_device/cudnn_attention.hpp"

#include <stdexcept>

namespace troupe::cuda {

struct cudnn_attention::state {};

cudnn_attention::cudnn_attention() {
  throw std::runtime_error{"this build is without cuDNN: cmake found no cudnn_graph.h"};
}

cudnn_attention::~cudnn_attention() = default;

std::int64_t cudnn_attention::version() const {
  return 0;
}

std::optional<std::int64_t>
cudnn_attention::forward_space(const attention_shape&,
                               const stored_matrix<const float>&,
                               const stored_matrix<const float>&) {
  return std::nullopt;
}

std::optional<std::int64_t> cudnn_attention::backward_space(
  const attention_shape&, const stored_matrix<const float>&,
  const stored_matrix<const float>&, const stored_matrix<const float>&,
  const stored_matrix<const float>&) {
  return std::nullopt;
}

void cudnn_attention::forward(const attention_shape&, const stored_matrix<const float>&,
                              const stored_matrix<float>&, float*, void*,
                              CUstream_st*) {
  // no object exists
}

void cudnn_attention::backward(const attention_shape&,
                               const stored_matrix<const float>&,
                               const stored_matrix<const float>&, const float*,
                               const stored_matrix<const float>&,
                               const stored_matrix<float>&, void*, CUstream_st*) {
  // no object exists
}

} // namespace troupe::cuda
