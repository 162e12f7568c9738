#pragma once

#include "kernels/matrix.hpp"

namespace troupe {

/// What is called with each part of a product as soon as it is complete, while it is in
/// the cache: its first row and column in c, and the part. Null: nothing is.
struct part_call {
  void (*call)(const void* context, std::int64_t row, std::int64_t column,
               matrix<float> part) = nullptr;
  const void* context = nullptr;
};

/// c = alpha a b + beta c on this thread, in vector instructions. The bits of an
/// element depend on its row of a, its column of b and their length alone: not on how c
/// was cut into calls. \pre the sizes fit, c is not transposed
void sgemm(matrix<const float> a, matrix<const float> b, float alpha, float beta,
           matrix<float> c, part_call finish);

} // namespace troupe
