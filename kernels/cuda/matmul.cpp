// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/matmul.hpp"

#include "kernels/cuda/kernels.hpp"

namespace troupe::cuda {

namespace {

/// Copies a matrix of fp32 to bf16, without gaps between rows. \pre not bf16
input rounded(input m, bf16* copy, stream& on) {
  const matrix<bf16> to{copy, m.rows, m.columns, m.columns, false};
  auto stored = m;
  stored.transposed = false;
  arrays::copy(stored, to, on.on());
  return matrix<const bf16>{copy, m.rows, m.columns, m.columns, m.transposed};
}

std::int64_t bytes_of_bf16(const input& m) {
  return m.rows * m.columns * static_cast<std::int64_t>(sizeof(bf16));
}

/// The right factor in bf16. If b.packed has memory, the copy stays there, and is
/// reused for the same version.
input rounded_right(const kept_right_side<float>& b, stream& on) {
  if (b.b.is_bf16)
    return b.b;
  if (b.packed == nullptr)
    return rounded(
      b.b, static_cast<bf16*>(on.space(workspace::right_factor, bytes_of_bf16(b.b))),
      on);
  auto* const kept = reinterpret_cast<bf16*>(b.packed);
  if (*b.holds == b.version)
    return matrix<const bf16>{kept, b.b.rows, b.b.columns, b.b.columns, b.b.transposed};
  *b.holds = b.version;
  return rounded(b.b, kept, on);
}

} // namespace

void matmul(precision by, input a, const kept_right_side<float>& b, float beta,
            output c, stream& on, const epilogue<float>& end, bool exact) {
  auto factor = b.b;
  if (by == precision::bf16) {
    if (!a.is_bf16)
      a = rounded(
        a, static_cast<bf16*>(on.space(workspace::left_factor, bytes_of_bf16(a))), on);
    factor = rounded_right(b, on);
  }
  const auto sums =
    c.is_bf16 ? dense(static_cast<float*>(on.space(
                        workspace::sums,
                        c.rows * c.columns * static_cast<std::int64_t>(sizeof(float)))),
                      c.rows, c.columns)
              : c.plain();
  on.product(a, factor, beta, sums, on.tf32() && !exact);
  if (c.is_bf16 || end.what != epilogue_kind::none)
    epilogues::finish(sums, end, c, on.on());
}

} // namespace troupe::cuda
