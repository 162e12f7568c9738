// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/catalog/pairs.hpp"

#include <utility>

namespace troupe {

std::vector<action> batch_in_pairs(batch_writer to, int position, int positions,
                                   int microbatches) {
  const int remaining = positions - 1 - position;
  const auto times = [](int count, const auto& step) {
    for (int i = 0; i < count; ++i)
      step(i);
  };
  times(2 * remaining, [&](int) { to.forward(0); });
  times(position + 1, [&](int) {
    to.forward(0);
    to.forward(1);
  });
  times(remaining, [&](int) {
    to.input_gradient(1);
    to.weight_gradient();
    to.forward(1);
  });
  times(microbatches - 2 * positions + position + 1, [&](int i) {
    if (i == 0 && remaining == 0) {
      // As in DeepSeek's code, the first two are no pair: the neighbour gets this
      // forward earlier.
      to.forward(0);
      to.backward(1);
    } else {
      to.pair(0, 1);
    }
    to.pair(1, 0);
  });
  times(remaining, [&](int) {
    to.backward(1);
    to.pair(1, 0);
  });
  // From the middle on, backwards are split, so that weight gradients fill the end.
  const int middle = (position + 1) / 2;
  const auto backward = [&](int which, bool split) {
    split ? to.input_gradient(which) : to.backward(which);
  };
  times(position + 1, [&](int i) {
    backward(1, i > middle || (i == middle && position % 2 == 1));
    backward(0, i >= middle);
  });
  times(remaining, [&](int) {
    to.weight_gradient();
    to.input_gradient(0);
  });
  times(position + 1, [&](int) { to.weight_gradient(); });
  return std::move(to).batch();
}

} // namespace troupe
