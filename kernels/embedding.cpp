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
  cuda::embedding::take(tokens, count, copy, gpu.on());
  return copy;
}

} // namespace

template <class Scalar>
void embedding<Scalar>::forward(const shape& dims, const std::int32_t* tokens,
                                stored_matrix<const Scalar> words,
                                stored_matrix<const Scalar> places,
                                stored_matrix<Scalar> y, stream& on) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = on.gpu())
      return cuda::embedding::forward(dims, tokens, words, places, y, gpu->on());
  const auto rows = dims.sequences * dims.length;
  on.cpu().run_ranges(rows, 64, [&](std::int64_t first, std::int64_t last, int) {
    row_reader<Scalar> of_words{words}, of_places{places};
    row_writer<Scalar> to{y};
    for (auto r = first; r < last; ++r) {
      const auto token = row_of(tokens[r], dims);
      const auto* word = token < 0 ? nullptr : of_words.row(token);
      const auto* place =
        places.data == nullptr ? nullptr : of_places.row(dims.place_of(r));
      auto* out = to.row(r);
      if (word != nullptr && place != nullptr)
        for (std::int64_t c = 0; c < dims.width; ++c)
          out[c] = word[c] + place[c];
      else if (word != nullptr || place != nullptr)
        std::copy_n(word != nullptr ? word : place, dims.width, out);
      else
        std::fill_n(out, dims.width, Scalar{0});
      to.end(r);
    }
  });
}

template <class Scalar>
void embedding<Scalar>::gradient(const shape& dims, const std::int32_t* tokens,
                                 stored_matrix<const Scalar> dy, Scalar beta,
                                 Scalar* dwords, Scalar* dplaces, stream& on) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = on.gpu())
      return cuda::embedding::gradient(
        dims, tokens_on(*gpu, tokens, dims.sequences * dims.length), dy, beta, dwords,
        dplaces, gpu->on());
  constexpr std::int64_t columns_a_slice = 64; // a slice adds whole columns, in order
  const auto width = dims.width;
  const auto add_columns = [&](std::int64_t first, std::int64_t last, int) {
    const auto clear = [&](Scalar* rows, std::int64_t count) {
      for (std::int64_t r = 0; r < count; ++r)
        std::fill(rows + r * width + first, rows + r * width + last, Scalar{0});
    };
    if (beta == 0) {
      clear(dwords, dims.words);
      clear(dplaces, dims.length);
    }
    const auto count = last - first;
    row_reader<Scalar> from_above{dy.column_range(first, count)};
    for (std::int64_t r = 0; r < dims.sequences * dims.length; ++r) {
      const auto* upper = from_above.row(r);
      const auto token = row_of(tokens[r], dims);
      auto* place = dplaces + dims.place_of(r) * width + first;
      for (std::int64_t c = 0; c < count; ++c)
        place[c] += upper[c];
      auto* word = dwords + token * width + first;
      for (std::int64_t c = 0; token >= 0 && c < count; ++c)
        word[c] += upper[c];
    }
  };
  on.cpu().run_ranges(width, columns_a_slice, add_columns);
}

template struct embedding<float>;
template struct embedding<double>;

} // namespace troupe
