#include "kernels/attention.hpp"

#include "kernels/matmul.hpp"
#include "kernels/vector_math.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

// Queries whose scores are made together: the fewer, the less is made for later keys,
// to be thrown away. Of the backward, twice as many are summed into the keys'
// gradients.
constexpr std::int64_t block = 32;

/// One head's columns of a sequence's rows, in an array of rows this wide.
template <class Scalar>
matrix<Scalar> columns_of(const attention_shape& dims, Scalar* array,
                          std::int64_t row_width, std::int64_t sequence,
                          std::int64_t number) {
  const auto size = dims.width / dims.heads;
  const auto first_row = dims.by_position ? sequence : sequence * dims.length;
  const auto stride = dims.by_position ? dims.sequences * row_width : row_width;
  return {array + first_row * row_width + number * size, dims.length, size, stride};
}

/// The matrices of one head of one sequence.
template <class Scalar>
struct head {
  matrix<Scalar> q, k, v; // (T, C/H) each

  head(const attention_shape& dims, Scalar* qkv, std::int64_t sequence,
       std::int64_t number) {
    q = columns_of(dims, qkv, 3 * dims.width, sequence, number);
    k = columns_of(dims, qkv + dims.width, 3 * dims.width, sequence, number);
    v = columns_of(dims, qkv + 2 * dims.width, 3 * dims.width, sequence, number);
  }
};

template <class Scalar>
Scalar scale_of(const attention_shape& dims) {
  return 1 / std::sqrt(static_cast<Scalar>(dims.width / dims.heads));
}

/// Room for one packed matrix of a head: (T, C/H), or its transpose.
template <class Scalar>
std::int64_t packed_room(const attention_shape& dims) {
  const auto size = dims.width / dims.heads;
  return std::max(right_side<Scalar>::room(size, dims.length),
                  right_side<Scalar>::room(dims.length, size));
}

template <class Scalar>
std::int64_t scratch_a_thread(const attention_shape& dims) {
  return 2 * (2 * block * dims.length) + block + packed_room<Scalar>(dims) * 3;
}

/// Turns the scores of queries first.. into e^(score - row maximum), 0 for later keys;
/// `sums` are the sums of the rows and `log_sum` the logarithms of the whole sums.
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

/// From scores p' and d score weights dp: p = e^(p' - log_sum) into `p`, and
/// ds = p * (dp - sum_c dp p) * scale into `dp`, both 0 for later keys. The sum is dy .
/// y.
template <class Scalar>
void score_gradient(matrix<Scalar> p, matrix<Scalar> dp, std::int64_t first,
                    const Scalar* log_sum, matrix<const Scalar> y,
                    matrix<const Scalar> dy, Scalar scale) {
  for (std::int64_t r = 0; r < p.rows; ++r) {
    Scalar dot = 0;
    for (std::int64_t c = 0; c < y.columns; ++c)
      dot += y.row(r)[c] * dy.row(r)[c];
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
std::int64_t attention<Scalar>::scratch(const attention_shape& dims, int threads) {
  return scratch_a_thread<Scalar>(dims) * threads;
}

template <class Scalar>
void attention<Scalar>::forward(const attention_shape& dims, const Scalar* qkv,
                                Scalar* y, Scalar* log_sum, Scalar* space, stream& on) {
  const auto heads = static_cast<int>(dims.sequences * dims.heads);
  const auto by = on.products();
  on.cpu().run(heads, [&](int slice, int worker) {
    const auto sequence = slice / dims.heads, number = slice % dims.heads;
    const head<const Scalar> in{dims, qkv, sequence, number};
    const auto out = columns_of(dims, y, dims.width, sequence, number);
    auto* const packed = space + worker * scratch_a_thread<Scalar>(dims);
    auto* const scores_space = packed + 2 * packed_room<Scalar>(dims);
    auto* const sums = scores_space + block * dims.length;
    const right_side<Scalar> keys_t{by, in.k.t(), packed};
    const right_side<Scalar> values{by, in.v, packed + packed_room<Scalar>(dims)};
    for (std::int64_t first = 0; first < dims.length; first += block) {
      const auto queries = std::min(block, dims.length - first);
      const auto scores = dense(scores_space, queries, first + queries);
      keys_t.multiply(in.q.row_range(first, queries), scale_of<Scalar>(dims), 0,
                      scores);
      exponentiate(scores, first, sums, log_sum + slice * dims.length + first);
      const auto rows = out.row_range(first, queries);
      values.multiply(scores, 1, 0, rows);
      for (std::int64_t r = 0; r < queries; ++r) {
        const Scalar factor = 1 / sums[r];
        for (std::int64_t c = 0; c < rows.columns; ++c)
          rows.row(r)[c] *= factor;
      }
    }
  });
}

template <class Scalar>
void attention<Scalar>::backward(const attention_shape& dims, const Scalar* qkv,
                                 const Scalar* y, const Scalar* log_sum,
                                 const Scalar* dy, Scalar* dqkv, Scalar* space,
                                 stream& on) {
  const auto heads = static_cast<int>(dims.sequences * dims.heads);
  const auto by = on.products();
  on.cpu().run(heads, [&](int slice, int worker) {
    const auto sequence = slice / dims.heads, number = slice % dims.heads;
    const head<const Scalar> in{dims, qkv, sequence, number};
    const head<Scalar> gradient{dims, dqkv, sequence, number};
    const auto out = columns_of(dims, y, dims.width, sequence, number);
    const auto upper = columns_of(dims, dy, dims.width, sequence, number);
    const auto scale = scale_of<Scalar>(dims);
    const auto room = packed_room<Scalar>(dims);
    auto* const packed = space + worker * scratch_a_thread<Scalar>(dims);
    auto* const scores_space = packed + 3 * room;
    const right_side<Scalar> keys_t{by, in.k.t(), packed},
      values_t{by, in.v.t(), packed + room}, keys{by, in.k, packed + 2 * room};
    // The last blocks first: they reach all keys, so they set what the others add to.
    constexpr auto both = 2 * block;
    const auto pairs = (dims.length + both - 1) / both;
    for (auto pair = pairs; pair-- > 0;) {
      const auto begin = pair * both;
      const auto end = std::min(begin + both, dims.length);
      const auto p = dense(scores_space, end - begin, end);
      const auto ds = dense(scores_space + both * dims.length, end - begin, end);
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
      multiply<Scalar>(by, ds.t(), in.q.row_range(begin, end - begin), 1, beta,
                       gradient.k.row_range(0, end));
      multiply<Scalar>(by, p.t(), upper.row_range(begin, end - begin), 1, beta,
                       gradient.v.row_range(0, end));
    }
  });
}

template struct attention<float>;
template struct attention<double>;

} // namespace troupe
