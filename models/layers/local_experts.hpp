// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layers/expert.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// The experts that a layer computes itself. One frame serves all experts: x, y, dy and
/// dx have the rows of all experts, of width C, sorted by expert. `parameters` and
/// `gradients` begin at the first expert's values.
template <class Scalar>
class local_experts {
public:
  local_experts() = default; // no experts

  local_experts(const gpt_shape& dims, int block, int count);

  /// Number of values that the array `which` (saved or kept) needs for all experts. The
  /// number suffices for any distribution of at most `rows` rows over the experts. Each
  /// expert has a separate part of the array, on separate cache lines.
  std::int64_t values(std::int64_t layer_sizes::*which, std::int64_t rows) const;

  // The passes of all experts.
  // \param counts number of rows of each expert
  void forward(const frame<Scalar>& whole_frame, const std::int32_t* counts) const;
  void input_gradient(const frame<Scalar>& whole_frame,
                      const std::int32_t* counts) const;
  void weight_gradient(const frame<Scalar>& whole_frame,
                       const std::int32_t* counts) const;

private:
  /// Calls run(expert, the expert's frame) for each expert.
  template <class Run>
  void for_each(const frame<Scalar>& whole_frame, const std::int32_t* counts,
                const Run& run) const;

  std::vector<std::shared_ptr<const layer<Scalar>>> experts_;
};

} // namespace troupe
