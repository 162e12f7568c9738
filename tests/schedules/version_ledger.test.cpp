// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/version_ledger.hpp"

#include <catch2/catch_test_macros.hpp>

#include <limits>
#include <stdexcept>

namespace troupe::version_ledger_test {

using troupe::version_ledger;

TEST_CASE("an update nobody looks back from is made in place", "[version_ledger]") {
  version_ledger versions;
  versions.need_from(1);
  CHECK(versions.advance());
  CHECK(versions.newest() == 1);
  CHECK(versions.alive() == 1);
  CHECK(versions.peak() == 1);
}

TEST_CASE("a version held by a microbatch outlives the update", "[version_ledger]") {
  version_ledger versions;
  versions.hold(0);
  versions.need_from(std::numeric_limits<int>::max());
  CHECK_FALSE(versions.advance());
  CHECK(versions.contains(0));
  CHECK(versions.alive() == 2);
  versions.release(0);
  CHECK_FALSE(versions.contains(0));
  CHECK(versions.alive() == 1);
  CHECK(versions.peak() == 2);
}

TEST_CASE("a version that a later forward may read outlives the update",
          "[version_ledger]") {
  version_ledger versions;
  versions.need_from(0);
  CHECK_FALSE(versions.advance());
  CHECK(versions.contains(0));
  versions.need_from(1);
  CHECK_FALSE(versions.contains(0));
  CHECK_FALSE(versions.advance());
  versions.need_from(1);
  CHECK(versions.contains(1));
}

TEST_CASE("a version that is gone cannot be held", "[version_ledger]") {
  version_ledger versions;
  versions.need_from(1);
  versions.advance();
  CHECK_THROWS_AS(versions.hold(0), std::logic_error);
}

} // namespace troupe::version_ledger_test
