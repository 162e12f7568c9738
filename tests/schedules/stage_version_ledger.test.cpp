// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/stage_version_ledger.hpp"

#include "schedules/catalog/catalog.hpp"

#include <catch2/catch_test_macros.hpp>

#include <stdexcept>

namespace troupe::stage_ledger_test {

TEST_CASE("pipedream's first stage reads a version for each microbatch in flight",
          "[stage_version_ledger]") {
  const auto sch = pipedream();
  const shape dims{3, 8};
  stage_version_ledger books{sch, dims, {0, 0}};
  for (const int m : {0, 1, 2})
    CHECK(books.begin_forward(m) == 0);
  for (int m = 0; m < 5; ++m) {
    CHECK(books.version_for_backward(m) == std::max(0, m - 2));
    books.end_backward(m);
    const auto update = books.begin_update();
    books.end_update();
    CHECK(update.from == m);
    CHECK(update.gradients == 1);
    CHECK(update.stalest == std::min(m, 2));
    CHECK(update.staleness == std::min(m, 2));
    CHECK(books.begin_forward(m + 3) == m + 1);
  }
  CHECK(books.versions_peak() == 3);
  CHECK(books.held() == 3);
  CHECK(books.peak_held() == 3);
  CHECK(books.oldest_held() == 5);
}

TEST_CASE("a flush schedule cannot forward the next batch before its update",
          "[stage_version_ledger]") {
  const auto sch = gpipe();
  stage_version_ledger books{sch, {1, 1, 2}, {0, 0}};
  books.begin_forward(0);
  books.end_backward(0);
  CHECK_FALSE(books.can_forward(1));
  CHECK(books.begin_update().in_place);
  CHECK_FALSE(books.can_forward(1)); // the version is being made
  books.end_update();
  CHECK(books.can_forward(1));
}

TEST_CASE("on the latest weights a backward reads what is newest then",
          "[stage_version_ledger]") {
  const auto sch = ampnet(4, 2);
  stage_version_ledger books{sch, {2, 8}, {0, 0}};
  for (const int m : {0, 1, 2})
    books.begin_forward(m);
  books.end_backward(1);
  books.end_backward(0);
  CHECK(books.summed() == 2);
  CHECK(books.begin_update().in_place);
  CHECK(books.version_for_backward(2) == 1);
  books.begin_forward(3);
  books.end_backward(2); // read version 0
  books.end_backward(3); // read version 1
  const auto update = books.begin_update();
  CHECK(update.stalest == 1);
  CHECK(update.staleness == 1);
  CHECK(books.versions_peak() == 1);
}

TEST_CASE("microbatches far apart may be in flight together",
          "[stage_version_ledger]") {
  const auto sch = ampnet(100, 1);
  stage_version_ledger books{sch, {2, 100'000}, {0, 0}};
  for (const int m : {0, 4, 8, 1024, 65'536, 65'540})
    books.begin_forward(m);
  CHECK(books.held() == 6);
  CHECK(books.peak_held() == 6);
  for (const int m : {65'540, 8, 0, 4, 65'536, 1024})
    books.end_backward(m);
  CHECK(books.held() == 0);
  books.begin_forward(99'999);
  CHECK(books.held() == 1);
  CHECK(books.peak_held() == 6); // the largest number stays
  CHECK_THROWS_AS(books.end_backward(8), std::logic_error);
}

} // namespace troupe::stage_ledger_test
