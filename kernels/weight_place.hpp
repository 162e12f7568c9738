// SPDX-License-Identifier: BSD-3-Clause
// The location of a bucket of parameters in one version, and the memory of packed
// matrices.
#pragma once

#include "kernels/stored_matrix.hpp"

#include <limits>
#include <memory>

namespace troupe {

/// Memory in which matrices stay packed for products of bf16, or no memory. Each packed
/// copy is of one version. The caller owns `data` and `holds`.
template <class Scalar>
struct packed_weights {
  static constexpr int nothing = std::numeric_limits<int>::min();

  Scalar* data = nullptr;
  int* holds = nullptr; ///< The version of each copy; `nothing` at first.

  /// The memory after `values` values and `copies` copies.
  packed_weights offset_by(std::int64_t values, std::size_t copies) const {
    return data == nullptr ? *this : packed_weights{data + values, holds + copies};
  }
};

/// A bucket of parameters for forwards and backwards. The matrices that only products
/// read may be bf16, in less memory; all other values are Scalars.
template <class Scalar>
struct weight_bucket {
  const Scalar* data = nullptr; ///< Memory of the caller.
  /// The type of the matrices that only products read.
  precision matrices = precision::fp32;
  int version = 0; ///< The version of the parameters.
  /// Packed matrices; without memory, each product packs its matrices.
  packed_weights<Scalar> packed;

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

/// The location of a version of a bucket. Copies share one location. After move_to(),
/// works that were planned before also find the new location, because each work reads
/// the location at its start.
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

  /// The location, valid until the next move_to().
  weight_bucket<Scalar> now() const { return *now_; }

  /// Changes the location for all copies of this object.
  /// \pre no forward or backward that reads the version is running
  void move_to(weight_bucket<Scalar> bucket) const { *now_ = bucket; }

private:
  std::shared_ptr<weight_bucket<Scalar>> now_;
};

} // namespace troupe
