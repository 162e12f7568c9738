// SPDX-License-Identifier: BSD-3-Clause
#include "models/layers/local_experts.hpp"

namespace troupe {

template <class Scalar>
local_experts<Scalar>::local_experts(const gpt_shape& dims, int block, int count) {
  for (int e = 0; e < count; ++e)
    experts_.push_back(expert_layer<Scalar>(dims, expert_name(block, e)));
}

template <class Scalar>
std::int64_t local_experts<Scalar>::values(std::int64_t layer_sizes::*which,
                                           std::int64_t rows) const {
  if (experts_.empty())
    return 0;
  const auto& expert = *experts_.front();
  return expert.sizes(rows, 1).*which
         + static_cast<std::int64_t>(experts_.size()) * (expert.sizes(1, 1).*which);
}

template <class Scalar>
template <class Run>
void local_experts<Scalar>::for_each(const frame<Scalar>& whole_frame,
                                     const std::int32_t* counts, const Run& run) const {
  auto next = whole_frame;
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    const auto& expert = *experts_[e];
    next.samples = counts[e];
    run(expert, next);
    const auto sizes = expert.sizes(counts[e], 1);
    next.x = static_cast<const Scalar*>(next.x) + counts[e] * expert.input();
    next.y = static_cast<Scalar*>(next.y) + counts[e] * expert.output();
    next.saved += sizes.saved;
    next.parameters.data += expert.bucket(next.parameters.matrices);
    next.parameters.packed =
      next.parameters.packed.offset_by(expert.packed_values(), expert.packed_copies());
    if (whole_frame.kept == nullptr)
      continue;
    next.dy = static_cast<const Scalar*>(next.dy) + counts[e] * expert.output();
    next.dx = static_cast<Scalar*>(next.dx) + counts[e] * expert.input();
    next.kept += sizes.kept;
    if (whole_frame.gradients != nullptr)
      next.gradients += expert.bucket();
  }
}

template <class Scalar>
void local_experts<Scalar>::forward(const frame<Scalar>& whole_frame,
                                    const std::int32_t* counts) const {
  for_each(whole_frame, counts,
           [](const auto& expert, const auto& f) { expert.forward(f); });
}

template <class Scalar>
void local_experts<Scalar>::input_gradient(const frame<Scalar>& whole_frame,
                                           const std::int32_t* counts) const {
  for_each(whole_frame, counts,
           [](const auto& expert, const auto& f) { expert.input_gradient(f); });
}

template <class Scalar>
void local_experts<Scalar>::weight_gradient(const frame<Scalar>& whole_frame,
                                            const std::int32_t* counts) const {
  for_each(whole_frame, counts,
           [](const auto& expert, const auto& f) { expert.weight_gradient(f); });
}

template class local_experts<float>;
template class local_experts<double>;

} // namespace troupe
