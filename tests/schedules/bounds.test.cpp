// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/bounds.hpp"

#include "schedules/catalog/catalog.hpp"
#include "tests/schedules/examples.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::bounds_test {

TEST_CASE("a settled run holds as much as the whole, for every schedule and size",
          "[bounds]") {
  int shortened = 0;
  for (const auto& sch :
       {naive(), gpipe(), one_f_one_b(), chimera(), two_bw(), pipedream(), pipedream(3),
        pipedream(7), pipedream(4, true), pipedream(1, true), ampnet(40, 3),
        examples::one_batch_ahead()})
    for (const int stages : {1, 2, 4, 5})
      for (const int microbatches : {1, 2, 4, 6})
        for (const int steps : {1, 2, 13, 60, 61}) {
          const shape dims{stages, microbatches, steps};
          if (!validation_error(sch, dims).empty())
            continue;
          const auto brief = settled(sch, dims);
          shortened += brief.steps < steps;
          CHECK(brief.steps <= steps);
          for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank)
            CHECK(bounds_of(sch, dims, rank) == bounds_of(sch, brief, rank));
        }
  CHECK(shortened > 100);
}

TEST_CASE("how long a run is does not matter to its bounds", "[bounds]") {
  const auto brief = settled(pipedream(3), {4, 8, 1'000'000});
  CHECK(brief.steps < 20);
  // as many are left for the last update
  CHECK(brief.steps * 8 % 3 == 1'000'000 * 8 % 3);
}

} // namespace troupe::bounds_test
