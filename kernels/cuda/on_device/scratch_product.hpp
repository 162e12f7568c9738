// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/library_product.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

struct CUstream_st;

// Measurements of a product's algorithms on a GPU.

namespace troupe::cuda {

/// A product of the same sizes as another, on memory of its own on the current GPU. The
/// arrays have random values from -1 to 1, because a GPU multiplies zeros faster.
class scratch_product {
public:
  /// Allocates the arrays, fills the arrays on the stream, and waits for the stream.
  /// \param original rows must follow each other without gaps
  /// \throws std::bad_alloc
  /// \throws std::runtime_error if the GPU fails for another reason
  scratch_product(const library_product& original, std::int64_t workspace_bytes,
                  CUstream_st* stream);

  /// The product; valid as long as this object.
  const library_product& product() const { return product_; }

  void* workspace() const { return workspace_.get(); }

private:
  template <class Scalar>
  void replace(Scalar*& array, std::int64_t bytes, bool is_bf16);

  CUstream_st* stream_;
  library_product product_;
  std::shared_ptr<void> workspace_;
  std::vector<std::shared_ptr<void>> arrays_;
};

/// Median microseconds of a launch, for `kinds` kinds of launches that take turns. In
/// each of 5 rounds, each kind is launched once, and then 3 times for the measurement.
/// Waits for the stream. A kind that cannot be launched has an infinite time.
/// \param launch launches a kind, from 0 on; returns whether the launch was possible
/// \throws std::runtime_error if the GPU fails
std::vector<double>
microseconds_of_turns(std::size_t kinds,
                      const std::function<bool(std::size_t kind)>& launch,
                      CUstream_st* stream);

} // namespace troupe::cuda
