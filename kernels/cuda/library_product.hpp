// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/epilogue.hpp"

#include <cstdint>
#include <string>

namespace troupe {
class memory_space;
}

namespace troupe::cuda {

class stream;

/// A product as a stream's library runs it: s = a b + beta c in fp32, then an epilogue,
/// then one rounding to the type of c. a and b have one type, and are read transposed
/// if the view says so. With beta 0, c may hold anything.
struct library_product {
  stored_matrix<const float> a, b;
  float beta = 0;
  stored_matrix<float> c; ///< (M, N): fp32; or bf16, if a is bf16 and beta is 0.
  bool tf32 = false;      ///< Whether operands of fp32 are rounded to 11 bits.
  /// An epilogue of kernels/epilogue.hpp other than bias_relu. Kinds other than none
  /// need c, x and y of bf16.
  epilogue_kind end = epilogue_kind::none;
  const bf16* bias = nullptr;        ///< (N); for kinds with a bias.
  stored_matrix<const float> x = {}; ///< As the epilogue's.
  stored_matrix<float> y = {};       ///< As the epilogue's.
};

/// Runs each epilogue on a small product, and compares the results with those of
/// epilogues::finish(). Waits for the stream.
/// \param space memory that the stream's GPU and this machine access
/// \returns why the library's epilogues cannot be used; empty if all are within 1e-2,
/// as norm of the difference over norm
std::string error_of_epilogues(stream& gpu_stream, memory_space& space);

} // namespace troupe::cuda
