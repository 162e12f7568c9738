// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/embedding.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// The row of a token in a table of words; -1 if another shard stores the token.
template <class Shape>
std::int64_t row_of(std::int32_t token, const Shape& dims) {
  const auto row = token - dims.first_word;
  return row >= 0 && row < dims.words ? row : -1;
}

/// Copies tokens to the GPU's memory. The gradient's kernel searches all tokens for
/// each word, and would otherwise read the machine's memory that often.
[[maybe_unused]] const std::int32_t*
tokens_on(cuda::stream& gpu, const std::int32_t* tokens, std::int64_t count) {
  auto* const copy =
    static_cast<std::int32_t*>(gpu.space(cuda::workspace::rows, 4 * count));
  cuda::embedding::take(tokens, count, copy, gpu.handle());
  return copy;
}

} // namespace

template <class Scalar>
void embedding<Scalar>::forward(const shape& dims, const std::int32_t* tokens,
                                stored_matrix<const Scalar> words,
                                stored_matrix<const Scalar> positions,
                                stored_matrix<Scalar> y, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::embedding::forward(dims, tokens, words, positions, y, gpu->handle());
  const auto rows = dims.sequences * dims.length;
  stream.cpu().run_ranges(rows, 64, [&](std::int64_t first, std::int64_t last, int) {
    row_reader<Scalar> word_reader{words}, position_reader{positions};
    row_writer<Scalar> to{y};
    for (auto r = first; r < last; ++r) {
      const auto token = row_of(tokens[r], dims);
      const auto* word = token < 0 ? nullptr : word_reader.row(token);
      const auto* position =
        positions.data == nullptr ? nullptr : position_reader.row(dims.position_of(r));
      auto* out = to.row(r);
      if (word != nullptr && position != nullptr)
        for (std::int64_t c = 0; c < dims.width; ++c)
          out[c] = word[c] + position[c];
      else if (word != nullptr || position != nullptr)
        std::copy_n(word != nullptr ? word : position, dims.width, out);
      else
        std::fill_n(out, dims.width, Scalar{0});
      to.end(r);
    }
  });
}

template <class Scalar>
void embedding<Scalar>::gradient(const shape& dims, const std::int32_t* tokens,
                                 stored_matrix<const Scalar> dy, Scalar beta,
                                 Scalar* dwords, Scalar* dpositions, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::embedding::gradient(
        dims, tokens_on(*gpu, tokens, dims.sequences * dims.length), dy, beta, dwords,
        dpositions, gpu->handle());
  constexpr std::int64_t columns_a_slice = 64; // a slice adds whole columns, in order
  const auto width = dims.width;
  const auto add_columns = [&](std::int64_t first, std::int64_t last, int) {
    const auto clear = [&](Scalar* rows, std::int64_t count) {
      for (std::int64_t r = 0; r < count; ++r)
        std::fill(rows + r * width + first, rows + r * width + last, Scalar{0});
    };
    if (beta == 0) {
      clear(dwords, dims.words);
      clear(dpositions, dims.length);
    }
    const auto count = last - first;
    row_reader<Scalar> from_above{dy.column_range(first, count)};
    for (std::int64_t r = 0; r < dims.sequences * dims.length; ++r) {
      const auto* upper = from_above.row(r);
      const auto token = row_of(tokens[r], dims);
      auto* position = dpositions + dims.position_of(r) * width + first;
      for (std::int64_t c = 0; c < count; ++c)
        position[c] += upper[c];
      auto* word = dwords + token * width + first;
      for (std::int64_t c = 0; token >= 0 && c < count; ++c)
        word[c] += upper[c];
    }
  };
  stream.cpu().run_ranges(width, columns_a_slice, add_columns);
}

template struct embedding<float>;
template struct embedding<double>;

} // namespace troupe
