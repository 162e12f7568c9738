// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/catalog/pairs.hpp"

#include <utility>

namespace troupe {

std::vector<action> batch_in_pairs(batch_writer to, int place, int places,
                                   int microbatches) {
  const int after = places - 1 - place;
  const auto times = [](int count, const auto& step) {
    for (int i = 0; i < count; ++i)
      step(i);
  };
  times(2 * after, [&](int) { to.forward(0); });
  times(place + 1, [&](int) {
    to.forward(0);
    to.forward(1);
  });
  times(after, [&](int) {
    to.input_gradient(1);
    to.weight_gradient();
    to.forward(1);
  });
  times(microbatches - 2 * places + place + 1, [&](int i) {
    if (i == 0 && after == 0) {
      // As in DeepSeek's code, the first two are no pair: the neighbour gets this
      // forward earlier.
      to.forward(0);
      to.backward(1);
    } else {
      to.pair(0, 1);
    }
    to.pair(1, 0);
  });
  times(after, [&](int) {
    to.backward(1);
    to.pair(1, 0);
  });
  // From the middle on, backwards are split, so that weight gradients fill the end.
  const int middle = (place + 1) / 2;
  const auto backward = [&](int which, bool split) {
    split ? to.input_gradient(which) : to.backward(which);
  };
  times(place + 1, [&](int i) {
    backward(1, i > middle || (i == middle && place % 2 == 1));
    backward(0, i >= middle);
  });
  times(after, [&](int) {
    to.weight_gradient();
    to.input_gradient(0);
  });
  times(place + 1, [&](int) { to.weight_gradient(); });
  return std::move(to).batch();
}

} // namespace troupe
