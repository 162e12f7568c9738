// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/kept_right_side.hpp"
#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

namespace troupe {

/// c = what the epilogue makes of a b + beta c. a is (M, K), b is (K, N), c is (M, N),
/// each as read: transposed where the view says so; c is not transposed, and overlaps
/// neither a nor b. With beta 0, c may hold anything. On a stream whose products are
/// bf16 the floats of a and b are rounded to that, and a, b and c may be bf16; sums are
/// fp32, and rounded once if c is bf16, to which nothing is added. The bits depend
/// neither on the threads of the stream nor on what c is a part of.
/// \throws std::logic_error if the sizes of a, b and c do not fit
template <class Scalar>
void matmul(stored_matrix<const Scalar> a, stored_matrix<const Scalar> b, Scalar beta,
            stored_matrix<Scalar> c, stream& on, const epilogue<Scalar>& end = {});

/// The same. The first product with a version packs it.
/// \pre where b has room, products are bf16
template <class Scalar>
void matmul(stored_matrix<const Scalar> a, const kept_right_side<Scalar>& b,
            Scalar beta, stored_matrix<Scalar> c, stream& on,
            const epilogue<Scalar>& end = {});

/// Values (fp32) of room that a (K, N) matrix, as read, needs to stay packed.
std::int64_t kept_room(std::int64_t depth, std::int64_t columns);

/// The same in fp32, whatever the stream's products are.
template <class Scalar>
void exact_matmul(matrix<const Scalar> a, matrix<const Scalar> b, Scalar beta,
                  matrix<Scalar> c, stream& on);

// What the CPU's kernels do within their own slices:

/// The same of alpha a b + beta c, on this thread. float: sgemm or bf16_gemm. double:
/// the plain three loops, which tests judge float by.
template <class Scalar>
void multiply(precision by, stored_matrix<const Scalar> a,
              stored_matrix<const Scalar> b, Scalar alpha, Scalar beta,
              stored_matrix<Scalar> c, const epilogue<Scalar>& end = {});

/// The right side of many products on one thread: a (K, N) matrix, as read. float: a
/// copy in the order of its kernel, made once, in `room(K, N)` values of space: enough
/// for either precision.
template <class Scalar>
class right_side {
public:
  static std::int64_t room(std::int64_t depth, std::int64_t columns);

  right_side(precision by, stored_matrix<const Scalar> b, Scalar* space);

  /// c = alpha a b + beta c, with b's first rows and columns: as many as a has columns
  /// and as c has. bf16: rows up to the next multiple of 32 count 0 times what they
  /// hold, which is to be finite; alpha is 1 or beta 0.
  void multiply(stored_matrix<const Scalar> a, Scalar alpha, Scalar beta,
                stored_matrix<Scalar> c) const;

private:
  precision by_;
  stored_matrix<const Scalar> b_;
  const Scalar* packed_;
};

} // namespace troupe
