// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/matmul.hpp"

#include "kernels/cuda/kernels.hpp"

namespace troupe::cuda {

namespace {

/// Copies a matrix of fp32 to bf16, without gaps between rows. \pre not bf16
input rounded(input m, bf16* copy, stream& gpu_stream) {
  const matrix<bf16> to{copy, m.rows, m.columns, m.columns, false};
  auto stored = m;
  stored.transposed = false;
  arrays::copy(stored, to, gpu_stream.handle());
  return matrix<const bf16>{copy, m.rows, m.columns, m.columns, m.transposed};
}

std::int64_t bytes_of_bf16(const input& m) {
  return m.rows * m.columns * static_cast<std::int64_t>(sizeof(bf16));
}

/// The right factor in bf16. If b.packed has memory, the copy stays there, and is
/// reused for the same version.
input rounded_right(const kept_right_side<float>& b, stream& gpu_stream) {
  if (b.b.is_bf16)
    return b.b;
  if (b.packed == nullptr)
    return rounded(
      b.b,
      static_cast<bf16*>(gpu_stream.space(workspace::right_factor, bytes_of_bf16(b.b))),
      gpu_stream);
  auto* const kept = reinterpret_cast<bf16*>(b.packed);
  if (*b.holds == b.version)
    return matrix<const bf16>{kept, b.b.rows, b.b.columns, b.b.columns, b.b.transposed};
  *b.holds = b.version;
  return rounded(b.b, kept, gpu_stream);
}

/// Whether a matrix is bf16, and kernels of 16-byte loads can process all rows.
template <class Scalar>
bool is_aligned(const stored_matrix<Scalar>& m) {
  constexpr std::int64_t values = 16 / sizeof(bf16);
  return m.is_bf16 && m.columns % values == 0 && m.stride % values == 0
         && reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0;
}

/// Adds the epilogue to the product, if the library runs both in one kernel.
/// \returns whether the product has the epilogue now
bool fuse(library_product& product, const epilogue<float>& end, stream& gpu_stream) {
  if (!product.a.is_bf16 || product.beta != 0 || end.kind == epilogue_kind::bias_relu
      || !is_aligned(product.c) || (end.x.data != nullptr && !is_aligned(end.x))
      || (end.y.data != nullptr && !is_aligned(end.y)))
    return false;
  if (!gpu_stream.accepts_epilogue(end.kind))
    return false;
  const auto columns = product.c.columns;
  auto fused = product;
  fused.end = end.kind;
  fused.x = end.x;
  fused.y = end.y;
  auto* const rounded_bias =
    has_bias(end.kind) ? static_cast<bf16*>(gpu_stream.space(
      workspace::bias, columns * static_cast<std::int64_t>(sizeof(bf16))))
                       : nullptr;
  fused.bias = rounded_bias;
  if (!gpu_stream.is_available(fused))
    return false;
  if (rounded_bias != nullptr)
    arrays::copy(dense(end.bias, 1, columns),
                 matrix<bf16>{rounded_bias, 1, columns, columns, false},
                 gpu_stream.handle());
  product = fused;
  return true;
}

} // namespace

void matmul(precision operand_precision, input a, const kept_right_side<float>& b,
            float beta, output c, stream& gpu_stream, const epilogue<float>& end,
            bool exact) {
  auto factor = b.b;
  if (operand_precision == precision::bf16) {
    if (!a.is_bf16)
      a = rounded(
        a,
        static_cast<bf16*>(gpu_stream.space(workspace::left_factor, bytes_of_bf16(a))),
        gpu_stream);
    factor = rounded_right(b, gpu_stream);
  }
  library_product product{
    .a = a, .b = factor, .beta = beta, .c = c, .tf32 = gpu_stream.tf32() && !exact};
  if (fuse(product, end, gpu_stream))
    return gpu_stream.launch_product(product);
  const auto sums =
    c.is_bf16 ? dense(static_cast<float*>(gpu_stream.space(
                        workspace::sums,
                        c.rows * c.columns * static_cast<std::int64_t>(sizeof(float)))),
                      c.rows, c.columns)
              : c.plain();
  product = {.a = a, .b = factor, .beta = beta, .c = sums, .tf32 = product.tf32};
  gpu_stream.launch_product(product);
  if (c.is_bf16 || end.kind != epilogue_kind::none)
    epilogues::finish(sums, end, c, gpu_stream.handle());
}

} // namespace troupe::cuda
