// SPDX-License-Identifier: BSD-3-Clause
// Each rank exchanges chunks with each other rank, at growing distances. No two ranks
// ever send to the same rank in one round (Thakur, Rabenseifner and Gropp, 2005).
//
//   itself    chunk 0 of rank 0 ...
//   round 0   0 --chunk 1--> 1 --chunk 2--> 2 --chunk 3--> 3 --chunk 0--> 0
//   round 1   0 --chunk 2--> 2, 1 --chunk 3--> 3, 2 --chunk 0--> 0, 3 --chunk 1--> 1
//   round 2   0 --chunk 3--> 3, 1 --chunk 0--> 0, ...
//
// Rank r receives from rank s the chunk s of r's second array. Both arrays may have
// chunks of any sizes, as long as sender and receiver agree. Tokens for experts take
// two such exchanges: the first of one count a pair, the second of as many tokens.

#include "messaging/collective_catalog.hpp"

namespace troupe {

collective_order pairwise_all_to_all() {
  return {.operation = collective_operation::all_to_all,
          .name = "pairwise",
          .idea = "an exchange with each other rank, one a round",
          .chunks = [](int ranks) { return ranks; },
          .steps = [](int ranks) { return ranks; },
          .step = [](int rank, int ranks, int index) -> collective_step {
            const int to = (rank + index) % ranks;
            const int from = (rank - index + ranks) % ranks;
            return {.round = index > 0 ? index - 1 : 0,
                    .to = to,
                    .sent = {to, 1},
                    .from = from,
                    .received = {from, 1},
                    .use = reception::copy};
          },
          .cost = [](int ranks, double n) -> collective_cost {
            const double other_ranks = ranks - 1;
            return {other_ranks, ranks * other_ranks, other_ranks * n,
                    other_ranks > 0 ? n / ranks : 0, other_ranks * n / ranks};
          },
          .growth = "time K, total K n, peak n/K",
          .in_place = false};
}

} // namespace troupe
