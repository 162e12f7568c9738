// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"

#include <limits>
#include <memory>

namespace troupe {

/// Room in which matrices stay packed for products of bf16, each as one version of it;
/// or none.
template <class Scalar>
struct packed_weights {
  static constexpr int nothing = std::numeric_limits<int>::min();

  Scalar* room = nullptr;
  int* holds = nullptr; ///< The version of each copy; `nothing` at first.

  /// What is behind so many values and copies.
  packed_weights behind(std::int64_t values, std::size_t copies) const {
    return room == nullptr ? *this : packed_weights{room + values, holds + copies};
  }
};

/// A bucket of parameters, as passes read it: all of it of Scalar, or with the matrices
/// that only products read as bf16, in less room.
template <class Scalar>
struct weight_bucket {
  const Scalar* data = nullptr;
  precision matrices = precision::fp32;
  int version = 0;
  packed_weights<Scalar> packed; ///< Without room products pack for themselves.

  weight_bucket() = default;
  weight_bucket(const Scalar* whole) : data(whole) {
    // nop
  }
  weight_bucket(const Scalar* begin, precision of_matrices, int of_version = 0,
                packed_weights<Scalar> kept = {})
    : data(begin), matrices(of_matrices), version(of_version), packed(kept) {
    // nop
  }
};

/// Where a version of a bucket is. Copies know one place: when the version moves, also
/// passes that were planned before find it, as they look when they run.
template <class Scalar>
class weight_place {
public:
  weight_place() : weight_place(weight_bucket<Scalar>{}) {
    // nop
  }
  weight_place(weight_bucket<Scalar> begin)
    : now_(std::make_shared<weight_bucket<Scalar>>(begin)) {
    // nop
  }
  weight_place(const Scalar* whole) : weight_place(weight_bucket<Scalar>{whole}) {
    // nop
  }

  weight_bucket<Scalar> now() const { return *now_; }

  /// \pre no pass that reads it runs
  void move_to(weight_bucket<Scalar> there) const { *now_ = there; }

private:
  std::shared_ptr<weight_bucket<Scalar>> now_;
};

} // namespace troupe
