// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/read_samples.hpp"

#include <algorithm>
#include <vector>

namespace troupe {

void read_samples(const data_set& from, const network<float>& whole, sample_range which,
                  std::int64_t length, const sample_view& to) {
  const auto inputs = whole.layers.front()->input(), labels = whole.rows;
  if (length == 0 || length == labels) {
    for (std::int64_t i = 0; i < which.count; ++i)
      from.training(which.first + i, to.offset_by(i, inputs, labels));
    return;
  }
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(inputs)),
    answers(static_cast<std::size_t>(labels));
  for (std::int64_t i = 0; i < which.count; ++i) {
    from.training(
      which.first + i,
      {.tokens = tokens.data(), .pixels = nullptr, .labels = answers.data()});
    const auto view = to.offset_by(i, length, length);
    std::copy_n(tokens.data(), length, view.tokens);
    std::copy_n(answers.data(), length, view.labels);
  }
}

} // namespace troupe
