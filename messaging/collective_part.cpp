// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/collective_part.hpp"

#include <algorithm>
#include <optional>

namespace troupe {

collective_step step_of(const collective_part& part, int index) {
  const auto turned = [&](int rank) {
    return rank == nobody ? nobody : (rank + part.root) % part.ranks;
  };
  const auto turned_range = [&](chunk_range range) {
    range.first = (range.first + part.root) % part.source.count();
    return range;
  };
  const int rank = (part.rank - part.root + part.ranks) % part.ranks;
  auto step = part.order.step(rank, part.ranks, index);
  step.to = turned(step.to);
  step.from = turned(step.from);
  step.sent = turned_range(step.sent);
  step.received = turned_range(step.received);
  return step;
}

bool sends(const collective_part& part, const collective_step& step) {
  return step.to != nobody && part.source.size(step.sent) > 0;
}

bool receives(const collective_part& part, const collective_step& step) {
  return step.from != nobody && part.target.size(step.received) > 0;
}

collective_part even_part(const collective_order& order, int rank, int ranks,
                          std::int64_t values, int root, int instance) {
  const int count = order.chunks(ranks);
  const auto source = chunks::even(values, count);
  const auto target =
    order.in_place ? source : chunks::even(source.size({rank, 1}) * ranks, count);
  return {order, rank, ranks, root, source, target, instance};
}

payload_bound payloads_of(const collective_part& part) {
  payload_bound result;
  std::optional<chunk_range> last; // sent last, and not written since
  for (int i = 0; i < part.order.steps(part.ranks); ++i) {
    const auto step = step_of(part, i);
    if (sends(part, step) && last != step.sent) {
      last = step.sent;
      ++result.buffers;
      result.values =
        std::max(result.values, part.payload_values(part.source.size(step.sent)));
    }
    if (receives(part, step) && step.use != reception::hold)
      last.reset();
  }
  return result;
}

} // namespace troupe
