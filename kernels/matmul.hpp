#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/matrix.hpp"
#include "kernels/stream.hpp"

namespace troupe {

/// c = what the epilogue makes of a b + beta c. a is (M, K), b is (K, N), c is (M, N),
/// each as read: transposed where the view says so; c is not transposed, and overlaps
/// neither a nor b. With beta 0, c may hold anything. The bits depend neither on the
/// threads of the stream nor on what c is a part of.
/// \throws std::logic_error if the sizes of a, b and c do not fit
template <class Scalar>
void matmul(matrix<const Scalar> a, matrix<const Scalar> b, Scalar beta,
            matrix<Scalar> c, stream& on, const epilogue<Scalar>& end = {});

// What the CPU's kernels do within their own slices:

/// The same of alpha a b + beta c, on this thread. float: sgemm. double: the plain
/// three loops, which tests judge float by.
template <class Scalar>
void multiply(matrix<const Scalar> a, matrix<const Scalar> b, Scalar alpha, Scalar beta,
              matrix<Scalar> c, const epilogue<Scalar>& end = {});

/// The right side of many products on one thread: a (K, N) matrix, as read. float: a
/// copy in sgemm's order, made once, in `room(K, N)` values of space.
template <class Scalar>
class right_side {
public:
  static std::int64_t room(std::int64_t depth, std::int64_t columns);

  right_side(matrix<const Scalar> b, Scalar* space);

  /// c = alpha a b + beta c, with b's first rows and columns: as many as a has columns
  /// and as c has.
  void multiply(matrix<const Scalar> a, Scalar alpha, Scalar beta,
                matrix<Scalar> c) const;

private:
  matrix<const Scalar> b_;
  const Scalar* packed_;
};

} // namespace troupe
