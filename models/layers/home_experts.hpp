// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layers/expert.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// The experts that a layer computes itself. Their frame is one for all: M rows at most
/// of width C in x, y, dy and dx, sorted by expert, and `parameters` and `gradients`
/// from the first expert's on.
template <class Scalar>
class home_experts {
public:
  home_experts() = default; // none

  home_experts(const gpt_shape& dims, int block, int count);

  /// Values of one of their arrays, however at most so many rows fall to experts: each
  /// expert has arrays of its own, on cache lines of their own.
  std::int64_t values(std::int64_t layer_sizes::*which, std::int64_t rows) const;

  // The passes of all experts. \param counts rows of each
  void forward(const frame<Scalar>& all, const std::int32_t* counts) const;
  void input_gradient(const frame<Scalar>& all, const std::int32_t* counts) const;
  void weight_gradient(const frame<Scalar>& all, const std::int32_t* counts) const;

private:
  /// Calls run(expert, its frame) for each.
  template <class Run>
  void for_each(const frame<Scalar>& all, const std::int32_t* counts,
                const Run& run) const;

  std::vector<std::shared_ptr<const layer<Scalar>>> experts_;
};

} // namespace troupe
