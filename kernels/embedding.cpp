#include "kernels/embedding.hpp"

#include <algorithm>
#include <type_traits>

namespace troupe {

namespace {

/// The row of a token in a table of words; null if the table has others.
template <class Scalar>
Scalar* row_of(std::int32_t token, Scalar* words,
               const typename embedding<std::remove_const_t<Scalar>>::shape& dims) {
  const auto row = token - dims.first_word;
  return row >= 0 && row < dims.words ? words + row * dims.width : nullptr;
}

} // namespace

template <class Scalar>
void embedding<Scalar>::forward(const shape& dims, const std::int32_t* tokens,
                                const Scalar* words, const Scalar* places, Scalar* y,
                                stream& on) {
  const auto rows = dims.sequences * dims.length;
  on.cpu().run_ranges(rows, 64, [&](std::int64_t first, std::int64_t last, int) {
    for (auto r = first; r < last; ++r) {
      const auto* word = row_of(tokens[r], words, dims);
      const auto* place =
        places == nullptr ? nullptr : places + dims.place_of(r) * dims.width;
      auto* out = y + r * dims.width;
      if (word != nullptr && place != nullptr)
        for (std::int64_t c = 0; c < dims.width; ++c)
          out[c] = word[c] + place[c];
      else if (word != nullptr || place != nullptr)
        std::copy_n(word != nullptr ? word : place, dims.width, out);
      else
        std::fill_n(out, dims.width, Scalar{0});
    }
  });
}

template <class Scalar>
void embedding<Scalar>::gradient(const shape& dims, const std::int32_t* tokens,
                                 const Scalar* dy, Scalar beta, Scalar* dwords,
                                 Scalar* dplaces, stream& on) {
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
    for (std::int64_t r = 0; r < dims.sequences * dims.length; ++r) {
      const auto* upper = dy + r * width;
      auto* word = row_of(tokens[r], dwords, dims);
      auto* place = dplaces + dims.place_of(r) * width;
      for (auto c = first; c < last; ++c)
        place[c] += upper[c];
      for (auto c = first; word != nullptr && c < last; ++c)
        word[c] += upper[c];
    }
  };
  on.cpu().run_ranges(width, columns_a_slice, add_columns);
}

template struct embedding<float>;
template struct embedding<double>;

} // namespace troupe
