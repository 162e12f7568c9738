// SPDX-License-Identifier: BSD-3-Clause
// Sends one message from the root to the next rank: the building block of all other
// orders.
//
//   round 0   0 --array--> 1        2        3

#include "messaging/collective_catalog.hpp"

namespace troupe {

collective_order direct_send() {
  return {.operation = collective_operation::send,
          .name = "direct",
          .idea = "one message, from the root to the next rank",
          .chunks = [](int) { return 1; },
          .steps = [](int ranks) { return ranks > 1 ? 1 : 0; },
          .step = [](int rank, int, int) -> collective_step {
            if (rank == 0)
              return {.to = 1, .sent = {0, 1}};
            if (rank == 1)
              return {.from = 0, .received = {0, 1}};
            return {};
          },
          .cost = [](int ranks, double n) -> collective_cost {
            return ranks > 1 ? collective_cost{1, 1, n, n, n} : collective_cost{};
          },
          .growth = "time 1, total n, peak n"};
}

} // namespace troupe
