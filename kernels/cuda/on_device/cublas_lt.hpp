// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/library_product.hpp"

#include <cstdint>
#include <memory>

struct CUstream_st;

namespace troupe::cuda {

/// Products of one GPU by cuBLASLt, which is loaded when the first object is made. An
/// algorithm is chosen once for each combination of sizes, strides, types and
/// alignments. At 1,024 combinations all choices are dropped. For one thread at a time,
/// and for the GPU that is current in the constructor.
class cublas_lt_products {
public:
  /// \throws std::runtime_error if cuBLASLt is not installed
  cublas_lt_products();
  ~cublas_lt_products();

  static constexpr std::int64_t workspace_bytes = std::int64_t{32} << 20;

  /// Whether cuBLASLt has an algorithm for a product.
  bool has_algorithm(const library_product& product);

  /// Launches a product.
  /// \param workspace memory of workspace_bytes bytes on the GPU
  /// \throws std::runtime_error if there is no algorithm, or the launch fails
  void launch(const library_product& product, void* workspace, CUstream_st* stream);

private:
  struct state;

  std::unique_ptr<state> state_;
};

} // namespace troupe::cuda
