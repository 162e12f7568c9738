// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/arrays.hpp"

#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace troupe::arrays_test {

TEST_CASE("arrays are copied, added and cleared, and what lies behind them is not",
          "[arrays]") {
  const auto n = GENERATE(0, 1, 17, 200'001);
  const int threads = GENERATE(0, 1, 3); // 0: without a stream
  const auto size = static_cast<std::size_t>(n);
  const auto from = random_values<float>(n + 1, 1),
             before = random_values<float>(n + 1, 2);
  auto copied = before, added = before, cleared = before;
  stream on{threads};
  if (threads == 0) {
    arrays<float>::copy(from.data(), n, copied.data());
    arrays<float>::add(from.data(), n, added.data());
  } else {
    arrays<float>::copy(from.data(), n, copied.data(), on);
    arrays<float>::add(from.data(), n, added.data(), on);
    arrays<float>::clear(n, cleared.data(), on);
  }
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i) {
    wrong += copied[i] != from[i];
    wrong += added[i] != before[i] + from[i];
    wrong += cleared[i] != (threads == 0 ? before[i] : 0);
  }
  CHECK(wrong == 0);
  for (const auto* array : {&copied, &added, &cleared})
    CHECK(array->back() == before.back());
}

TEST_CASE("rows of a matrix are copied, and what lies between them is not",
          "[arrays]") {
  constexpr std::int64_t rows = 300, columns = 700, gap = 5;
  const auto from = random_values<float>(rows * (columns + gap), 1);
  std::vector<float> to(rows * (columns + 2 * gap), 7);
  stream on{GENERATE(1, 3)};
  arrays<float>::copy(matrix<const float>{from.data(), rows, columns, columns + gap},
                      matrix<float>{to.data(), rows, columns, columns + 2 * gap}, on);
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns + 2 * gap; ++c)
      wrong +=
        to[static_cast<std::size_t>(r * (columns + 2 * gap) + c)]
        != (c < columns ? from[static_cast<std::size_t>(r * (columns + gap) + c)] : 7);
  CHECK(wrong == 0);
}

} // namespace troupe::arrays_test
