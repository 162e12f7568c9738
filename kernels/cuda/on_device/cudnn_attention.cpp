// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_device/cudnn_attention.hpp"

#include "kernels/cuda/on_device/cudnn_attention_graphs.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>

namespace troupe::cuda {

namespace {

using namespace cudnn;

constexpr float hidden_score = -std::numeric_limits<float>::infinity(), one = 1;

std::int64_t bytes_of_dots(const attention_sizes& shape) {
  const auto bytes = shape.sequences * shape.heads * shape.length * 4;
  return (bytes + 255) / 256 * 256;
}

/// The first columns of q, k and v.
struct parts {
  const void *q, *k, *v;

  parts(const attention_shape& dims, const stored_matrix<const float>& qkv)
    : q(qkv.data),
      k(qkv.column_range(dims.width, dims.width).data),
      v(qkv.column_range(2 * dims.width, dims.width).data) {
    // nop
  }
};

} // namespace

struct cudnn_attention::state {
  /// The plan of a shape; none if cuDNN has none.
  const std::optional<plan>& planned(const attention_sizes& shape) {
    const auto match = plans.find(shape);
    if (match != plans.end())
      return match->second;
    return plans.emplace(shape, new_plan(shape)).first->second;
  }

  std::optional<plan> new_plan(const attention_sizes& shape) {
    std::optional<plan> result;
    if (needs_mask(shape))
      return result;
    if (!handle)
      handle.emplace();
    try {
      result.emplace(shape.is_backward() ? backward_graph(shape) : forward_graph(shape),
                     handle->get());
    } catch (const std::runtime_error&) {
      // cuDNN refuses shapes by failures of many kinds
    }
    if (result && result->workspace() > most_space)
      result.reset();
    return result;
  }

  /// Whether rows of the last tile need a mask, which the graphs do not have: up to
  /// version 9.15.0, for sequences that are no multiple of 128 tokens.
  static bool needs_mask(const attention_sizes& shape) {
    return cudnn::version() < 91501 && shape.length % 128 != 0;
  }

  /// Bytes of work space of a plan, with the array of id_dots.
  std::optional<std::int64_t> space(const attention_sizes& shape) {
    const auto& found = planned(shape);
    if (!found)
      return std::nullopt;
    return found->workspace() + (shape.is_backward() ? bytes_of_dots(shape) : 0);
  }

  std::optional<cudnn::handle> handle; // made with the first plan
  std::map<attention_sizes, std::optional<plan>> plans;
};

namespace {

attention_sizes shape_of(const attention_shape& dims, std::int64_t qkv, std::int64_t y,
                         std::int64_t dy = 0, std::int64_t dqkv = 0) {
  return {dims.sequences,
          dims.length,
          dims.heads,
          dims.width / dims.heads,
          dims.by_position,
          qkv,
          y,
          dy,
          dqkv};
}

float scale_of(const attention_shape& dims) {
  return 1 / std::sqrt(static_cast<float>(dims.width / dims.heads));
}

} // namespace

cudnn_attention::cudnn_attention() {
  constexpr std::int64_t oldest = 91400; // the oldest that was measured
  if (cudnn::version() < oldest)
    throw std::runtime_error{"cuDNN " + std::to_string(cudnn::version())
                             + " is installed, and attention needs "
                             + std::to_string(oldest) + " or newer"};
  state_ = std::make_unique<state>();
}

cudnn_attention::~cudnn_attention() = default;

std::int64_t cudnn_attention::version() const {
  return cudnn::version();
}

std::optional<std::int64_t>
cudnn_attention::forward_space(const attention_shape& dims,
                               const stored_matrix<const float>& qkv,
                               const stored_matrix<const float>& y) {
  return state_->space(shape_of(dims, qkv.stride, y.stride));
}

std::optional<std::int64_t> cudnn_attention::backward_space(
  const attention_shape& dims, const stored_matrix<const float>& qkv,
  const stored_matrix<const float>& y, const stored_matrix<const float>& dy,
  const stored_matrix<const float>& dqkv) {
  return state_->space(shape_of(dims, qkv.stride, y.stride, dy.stride, dqkv.stride));
}

void cudnn_attention::forward(const attention_shape& dims,
                              const stored_matrix<const float>& qkv,
                              const stored_matrix<float>& y, float* log_sum,
                              void* workspace, CUstream_st* stream) {
  const parts in{dims, qkv};
  const auto scale = scale_of(dims);
  state_->planned(shape_of(dims, qkv.stride, y.stride))
    .value()
    .run({{id_q, in.q},
          {id_k, in.k},
          {id_v, in.v},
          {id_y, y.data},
          {id_log_sum, log_sum},
          {id_scale, &scale},
          {id_hidden, &hidden_score}},
         workspace, stream);
}

void cudnn_attention::backward(const attention_shape& dims,
                               const stored_matrix<const float>& qkv,
                               const stored_matrix<const float>& y,
                               const float* log_sum,
                               const stored_matrix<const float>& dy,
                               const stored_matrix<float>& dqkv, void* workspace,
                               CUstream_st* stream) {
  const parts in{dims, qkv}, gradient{dims, dqkv};
  const auto scale = scale_of(dims);
  const auto shape = shape_of(dims, qkv.stride, y.stride, dy.stride, dqkv.stride);
  state_->planned(shape).value().run(
    {{id_q, in.q},
     {id_k, in.k},
     {id_v, in.v},
     {id_y, y.data},
     {id_log_sum, log_sum},
     {id_dy, dy.data},
     {id_dq, gradient.q},
     {id_dk, gradient.k},
     {id_dv, gradient.v},
     {id_dots, workspace},
     {id_scale, &scale},
     {id_hidden, &hidden_score},
     {id_one, &one}},
    static_cast<char*>(workspace) + bytes_of_dots(shape), stream);
}

} // namespace troupe::cuda
