// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/library_product.hpp"
#include "kernels/cuda/product_choices.hpp"

#include <cstdint>
#include <memory>
#include <string>

struct CUstream_st;

namespace troupe::cuda {

/// Products of one GPU by cuBLASLt, which is loaded when the first object is made. An
/// algorithm is chosen once for each combination of sizes, strides, types, alignments,
/// transpositions, epilogue, tf32 and accumulation. The algorithm is that of
/// known_choices(), else cuBLASLt's first. After measure_choices(), a measurement
/// replaces known_choices(). A new combination after 1,024 drops all choices but the
/// measured ones. For one thread at a time, and for the GPU that is current in the
/// constructor.
class cublas_lt_products {
public:
  /// \param gpu model of the GPU: "NVIDIA H200"
  /// \throws std::runtime_error if cuBLASLt is not installed, or refuses the GPU
  explicit cublas_lt_products(std::string gpu);
  ~cublas_lt_products();

  static constexpr std::int64_t workspace_bytes = std::int64_t{32} << 20;

  /// Version of cuBLASLt: 130100 for 13.1.0.
  std::int64_t version() const;

  /// Whether cuBLASLt has an algorithm for a product.
  /// \throws the exceptions of known_choices(); std::runtime_error if cuBLASLt cannot
  /// describe the product, or a measurement fails
  bool has_algorithm(const library_product& product);

  /// Launches a product.
  /// \param workspace memory of workspace_bytes bytes on the GPU
  /// \throws std::runtime_error if there is no algorithm, or the launch fails
  void launch(const library_product& product, void* workspace, CUstream_st* stream);

  /// From now on, measures the algorithms of each new product that has a key, and takes
  /// the choice instead of the table's. A measurement waits for the stream, and runs on
  /// memory of its own: the product's arrays stay as they are.
  /// \param measured receives the choices; a product whose key has a row in `measured`
  /// is not measured again
  /// \param stream the stream of the measurements; must outlive this object
  /// \pre no list of launches is being captured when a product is new
  void measure_choices(std::shared_ptr<product_choices> measured, CUstream_st* stream);

private:
  struct state;

  std::unique_ptr<state> state_;
};

} // namespace troupe::cuda
