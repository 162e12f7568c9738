// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/attention.hpp"

#include "kernels/array_layout.hpp"
#include "kernels/bf16_choice.hpp"
#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/fused_attention.hpp"
#include "kernels/matmul.hpp"
#include "kernels/vector_math.hpp"
#include "kernels/widened_attention.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

// Queries whose scores are computed together. Fewer queries waste less work on the
// scores of later keys. The backward sums twice as many into the gradients of the keys.
constexpr std::int64_t block = 32;

/// The columns of one head in the rows of one sequence.
template <class Scalar>
stored_matrix<Scalar> columns_of(const attention_shape& dims,
                                 const stored_matrix<Scalar>& all_heads,
                                 std::int64_t sequence, std::int64_t number) {
  const auto size = dims.width / dims.heads;
  const auto first_row = dims.by_position ? sequence : sequence * dims.length;
  auto result = all_heads.row_range(first_row, 1).column_range(number * size, size);
  result.rows = dims.length;
  result.stride =
    dims.by_position ? dims.sequences * all_heads.stride : all_heads.stride;
  return result;
}

/// The matrices of one head of one sequence.
template <class Scalar>
struct head {
  stored_matrix<Scalar> q, k, v; // (T, C/H) each

  head(const attention_shape& dims, const stored_matrix<Scalar>& qkv,
       std::int64_t sequence, std::int64_t number) {
    const auto part = [&](int which) {
      return columns_of(dims, qkv.column_range(which * dims.width, dims.width),
                        sequence, number);
    };
    q = part(0);
    k = part(1);
    v = part(2);
  }

  head_matrices<Scalar> plain() const { return {q.plain(), k.plain(), v.plain()}; }

  widened_attention::head<Scalar> stored() const { return {q, k, v}; }
};

template <class Scalar>
Scalar scale_of(const attention_shape& dims) {
  return 1 / std::sqrt(static_cast<Scalar>(dims.width / dims.heads));
}

/// Whether widened_attention computes the heads.
bool widens(precision products) {
  return products == precision::bf16 && chosen_bf16_path() == bf16_path::widen;
}

/// Size, in values, of one packed matrix of a head: (T, C/H), or its transpose.
template <class Scalar>
std::int64_t packed_matrix_size(const attention_shape& dims) {
  const auto size = dims.width / dims.heads;
  return std::max(right_side<Scalar>::values(size, dims.length),
                  right_side<Scalar>::values(dims.length, size));
}

/// The part of the scratch that one thread uses. Without memory the constructor only
/// computes the size, `end`, in values.
template <class Scalar>
struct thread_space {
  thread_space(const attention_shape& dims, precision products, Scalar* begin = nullptr)
    : size_(dims.width / dims.heads) {
    array_layout<Scalar> layout{begin};
    for (auto*& array : packed)
      array = layout.allocate(packed_matrix_size<Scalar>(dims));
    for (auto*& array : scores)
      array = layout.allocate(2 * block * dims.length);
    sums = layout.allocate(block);
    for (auto*& array : results)
      array = layout.allocate(products == precision::fp32 ? 0 : dims.length * size_);
    end = layout.end();
    if (std::is_same_v<Scalar, float> && products == precision::fp32)
      end = std::max(end, fused_attention::scratch(dims.length, size_));
    if (std::is_same_v<Scalar, float> && products == precision::bf16) // of any path
      end = std::max(end, widened_attention::scratch(dims.length, size_));
  }

  /// Memory for the rows of `to`: `to` itself, unless the values are rounded at the
  /// end.
  matrix<Scalar> place_of(const stored_matrix<Scalar>& to, int which) const {
    return to.is_bf16 ? dense(results[which], to.rows, size_) : to.plain();
  }

  Scalar* packed[3];
  Scalar* scores[2]; // (64, T) each
  Scalar* sums;
  Scalar* results[2]; // (T, C/H) each, for results that are bf16
  std::int64_t end;

private:
  std::int64_t size_;
};

/// Turns the scores of queries first.. into e^(score - row maximum), 0 for later keys.
/// Fills `sums`, the sums of the rows, and `log_sum`, the logarithms of the sums of
/// e^score.
template <class Scalar>
void exponentiate(matrix<Scalar> scores, std::int64_t first, Scalar* sums,
                  Scalar* log_sum) {
  for (std::int64_t r = 0; r < scores.rows; ++r) {
    auto* row = scores.row(r);
    const auto seen = first + r + 1;
    const Scalar most = largest(row, seen);
    Scalar sum = 0;
    for (std::int64_t c = 0; c < seen; ++c) {
      row[c] = fast_exp(row[c] - most);
      sum += row[c];
    }
    std::fill(row + seen, row + scores.columns, Scalar{0});
    sums[r] = sum;
    log_sum[r] = most + std::log(sum);
  }
}

/// Computes the score weights and the gradients of scores in place, from the scores p'
/// and from dp, the gradients of the weights. `p` becomes p = e^(p' - log_sum), and
/// `dp` becomes ds = p * (dp - sum_c dp p) * scale. Both are 0 for later keys. The sum
/// is dy . y.
template <class Scalar>
void score_gradient(matrix<Scalar> p, matrix<Scalar> dp, std::int64_t first,
                    const Scalar* log_sum, const stored_matrix<const Scalar>& y,
                    const stored_matrix<const Scalar>& dy, Scalar scale) {
  row_reader<Scalar> of_y{y}, of_dy{dy};
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const auto *const output = of_y.row(r), *const upper = of_dy.row(r);
    Scalar dot = 0;
    for (std::int64_t c = 0; c < y.columns; ++c)
      dot += output[c] * upper[c];
    auto* weights = p.row(r);
    auto* gradient = dp.row(r);
    const auto seen = first + r + 1;
    for (std::int64_t c = 0; c < seen; ++c) {
      weights[c] = fast_exp(weights[c] - log_sum[r]);
      gradient[c] = weights[c] * (gradient[c] - dot) * scale;
    }
    std::fill(weights + seen, weights + p.columns, Scalar{0});
    std::fill(gradient + seen, gradient + p.columns, Scalar{0});
  }
}

} // namespace

template <class Scalar>
std::int64_t attention<Scalar>::scratch(const attention_shape& dims, int threads,
                                        precision products) {
  return thread_space<Scalar>{dims, products}.end * threads;
}

namespace {

template <class Scalar>
thread_space<Scalar> space_of(const attention_shape& dims, precision products,
                              Scalar* space, int worker) {
  return {dims, products, space + thread_space<Scalar>{dims, products}.end * worker};
}

} // namespace

template <class Scalar>
void attention<Scalar>::forward(const attention_shape& dims,
                                stored_matrix<const Scalar> qkv,
                                stored_matrix<Scalar> y, Scalar* log_sum, Scalar* space,
                                stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu()) {
      if (!gpu->attention_forward(dims, qkv, y, log_sum))
        cuda::attention::forward(dims, qkv, y, log_sum, gpu->handle());
      return;
    }
  const auto heads = static_cast<int>(dims.sequences * dims.heads);
  const auto products = stream.products();
  stream.cpu().run(heads, [&](int slice, int worker) {
    const auto sequence = slice / dims.heads, number = slice % dims.heads;
    const head<const Scalar> in{dims, qkv, sequence, number};
    const auto out = columns_of(dims, y, sequence, number);
    const auto buffers = space_of(dims, products, space, worker);
    if constexpr (std::is_same_v<Scalar, float>) {
      if (widens(products))
        return widened_attention::forward(
          in.stored(), out, log_sum + slice * dims.length, buffers.packed[0]);
      if (products == precision::fp32 && !(qkv.is_bf16 || y.is_bf16))
        return fused_attention::forward(
          in.plain(), out.plain(), log_sum + slice * dims.length, buffers.packed[0]);
    }
    const right_side<Scalar> keys_t{products, in.k.t(), buffers.packed[0]},
      values{products, in.v, buffers.packed[1]};
    for (std::int64_t first = 0; first < dims.length; first += block) {
      const auto queries = std::min(block, dims.length - first);
      const auto scores = dense(buffers.scores[0], queries, first + queries);
      keys_t.multiply(in.q.row_range(first, queries), scale_of<Scalar>(dims), 0,
                      scores);
      exponentiate(scores, first, buffers.sums, log_sum + slice * dims.length + first);
      const auto to = out.row_range(first, queries);
      const auto rows = buffers.place_of(to, 0);
      values.multiply(scores, 1, 0, rows);
      for (std::int64_t r = 0; r < queries; ++r) {
        const Scalar factor = 1 / buffers.sums[r];
        for (std::int64_t c = 0; c < rows.columns; ++c)
          rows.row(r)[c] *= factor;
      }
      if (to.is_bf16)
        round_into(to, rows);
    }
  });
}

template <class Scalar>
void attention<Scalar>::backward(const attention_shape& dims,
                                 stored_matrix<const Scalar> qkv,
                                 stored_matrix<const Scalar> y, const Scalar* log_sum,
                                 stored_matrix<const Scalar> dy,
                                 stored_matrix<Scalar> dqkv, Scalar* space,
                                 stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu()) {
      if (gpu->attention_backward(dims, qkv, y, log_sum, dy, dqkv))
        return;
      const auto rows = dims.sequences * dims.heads * dims.length;
      return cuda::attention::backward(
        dims, qkv, y, log_sum, dy, dqkv,
        static_cast<float*>(gpu->space(cuda::workspace::rows, 4 * rows)),
        gpu->handle());
    }
  const auto heads = static_cast<int>(dims.sequences * dims.heads);
  const auto products = stream.products();
  stream.cpu().run(heads, [&](int slice, int worker) {
    const auto sequence = slice / dims.heads, number = slice % dims.heads;
    const head<const Scalar> in{dims, qkv, sequence, number};
    const head<Scalar> gradient{dims, dqkv, sequence, number};
    const auto out = columns_of(dims, y, sequence, number);
    const auto upper = columns_of(dims, dy, sequence, number);
    const auto scale = scale_of<Scalar>(dims);
    const auto buffers = space_of(dims, products, space, worker);
    if constexpr (std::is_same_v<Scalar, float>) {
      if (widens(products))
        return widened_attention::backward(in.stored(), out,
                                           log_sum + slice * dims.length, upper,
                                           gradient.stored(), buffers.packed[0]);
      if (products == precision::fp32
          && !(qkv.is_bf16 || y.is_bf16 || dy.is_bf16 || dqkv.is_bf16))
        return fused_attention::backward(in.plain(), out.plain(),
                                         log_sum + slice * dims.length, upper.plain(),
                                         gradient.plain(), buffers.packed[0]);
    }
    const auto dk = buffers.place_of(gradient.k, 0),
               dv = buffers.place_of(gradient.v, 1);
    const right_side<Scalar> keys_t{products, in.k.t(), buffers.packed[0]},
      values_t{products, in.v.t(), buffers.packed[1]},
      keys{products, in.k, buffers.packed[2]};
    // The last blocks come first. The queries of the last blocks attend to all keys, so
    // these blocks initialise the sums for all other blocks.
    constexpr auto pair_size = 2 * block;
    const auto pairs = (dims.length + pair_size - 1) / pair_size;
    for (auto pair = pairs; pair-- > 0;) {
      const auto begin = pair * pair_size;
      const auto end = std::min(begin + pair_size, dims.length);
      const auto p = dense(buffers.scores[0], end - begin, end);
      const auto ds = dense(buffers.scores[1], end - begin, end);
      for (auto first = begin; first < end; first += block) {
        const auto queries = std::min(block, end - first);
        const auto seen = first + queries;
        const auto rows_p = p.row_range(first - begin, queries);
        const auto rows_ds = ds.row_range(first - begin, queries);
        const auto dy_rows = upper.row_range(first, queries);
        keys_t.multiply(in.q.row_range(first, queries), scale, 0,
                        rows_p.column_range(0, seen));
        values_t.multiply(dy_rows, 1, 0, rows_ds.column_range(0, seen));
        score_gradient<Scalar>(rows_p, rows_ds, first,
                               log_sum + slice * dims.length + first,
                               out.row_range(first, queries), dy_rows, scale);
        keys.multiply(rows_ds.column_range(0, seen), 1, 0,
                      gradient.q.row_range(first, queries));
      }
      const Scalar beta = pair == pairs - 1 ? 0 : 1;
      multiply<Scalar>(products, ds.t(), in.q.row_range(begin, end - begin), 1, beta,
                       dk.row_range(0, end));
      multiply<Scalar>(products, p.t(), upper.row_range(begin, end - begin), 1, beta,
                       dv.row_range(0, end));
    }
    if (dqkv.is_bf16) {
      round_into(gradient.k, dk);
      round_into(gradient.v, dv);
    }
  });
}

template struct attention<float>;
template struct attention<double>;

} // namespace troupe
