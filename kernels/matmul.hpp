// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/kept_right_side.hpp"
#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

namespace troupe {

/// c = the epilogue of a b + beta c. `a` is (M, K), `b` is (K, N), `c` is (M, N), each
/// as read: transposed where the view says so. `c` is not transposed, and overlaps
/// neither a nor b. With beta 0, c may hold anything. On a stream whose products are
/// bf16 the floats of a and b are rounded to bf16, and a, b and c may be bf16. A GPU
/// with TF32 rounds the operands of fp32 products to 11 bits. Sums of floats are fp32.
/// If c is bf16, sums are rounded once, and beta must be 0. The bits do not depend on
/// the threads of the stream nor, on the CPU, on the matrix that c is a part of.
/// \pre K is at least 1
/// \throws std::logic_error if the sizes of a, b and c do not fit, or c is transposed.
/// On the CPU also if fp32 products meet a matrix of bf16, or c is bf16 and beta not 0
/// \throws tl::bad_expected_access if the CPU computes bf16 and TROUPE_BF16 is wrong
template <class Scalar>
void matmul(stored_matrix<const Scalar> a, stored_matrix<const Scalar> b, Scalar beta,
            stored_matrix<Scalar> c, stream& stream, const epilogue<Scalar>& end = {});

/// Computes the product above with a right side that may stay packed. If `b.packed` is
/// not null and `*b.holds` is not `b.version`, packs b there and sets `*b.holds`.
/// \pre products are bf16 if `b.packed` is not null
template <class Scalar>
void matmul(stored_matrix<const Scalar> a, const kept_right_side<Scalar>& b,
            Scalar beta, stored_matrix<Scalar> c, stream& stream,
            const epilogue<Scalar>& end = {});

/// Size, in floats, of the memory that a (K, N) matrix, as read, needs to stay packed.
std::int64_t kept_size(std::int64_t depth, std::int64_t columns);

/// c = a b + beta c without rounding of operands, at any precision of the stream's
/// products.
template <class Scalar>
void exact_matmul(matrix<const Scalar> a, matrix<const Scalar> b, Scalar beta,
                  matrix<Scalar> c, stream& stream);

// CPU kernels use the function and the class below inside slices of team::run(). Both
// compute on the calling thread.

/// c = the epilogue of alpha a b + beta c, on this thread. For float: sgemm if
/// `products` is fp32, bf16_gemm if bf16. For double: the plain three loops, the
/// reference of the tests for float. Preconditions and errors are those of matmul() on
/// the CPU.
template <class Scalar>
void multiply(precision products, stored_matrix<const Scalar> a,
              stored_matrix<const Scalar> b, Scalar alpha, Scalar beta,
              stored_matrix<Scalar> c, const epilogue<Scalar>& end = {});

/// The right side of many products on one thread: a (K, N) matrix, as read. For float
/// the object keeps a copy in the order of the kernel, in `values(K, N)` values of the
/// caller's `space`. The space must outlive this object. For double the object reads b
/// itself, whose values must outlive this object. values() is large enough for fp32 and
/// for bf16.
template <class Scalar>
class right_side {
public:
  static std::int64_t values(std::int64_t depth, std::int64_t columns);

  right_side(precision products, stored_matrix<const Scalar> b, Scalar* space);

  /// c = alpha a b + beta c. For a (M, k) and c (M, n), the product uses the first k
  /// rows and the first n columns of b. For bf16, rows of b up to the next multiple of
  /// 32 may be multiplied by 0, so the values must be finite. For bf16, alpha is 1 or
  /// beta 0.
  void multiply(stored_matrix<const Scalar> a, Scalar alpha, Scalar beta,
                stored_matrix<Scalar> c) const;

private:
  precision products_;
  stored_matrix<const Scalar> b_;
  const Scalar* packed_;
};

} // namespace troupe
