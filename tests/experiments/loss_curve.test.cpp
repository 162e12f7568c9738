// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/loss_curve.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

namespace troupe::loss_curve_test {

using Catch::Approx;

namespace {

/// Entries of 2, 4 and 2 samples behind 10 earlier samples.
const loss_curve curve{{4, 3, 1}, {12, 16, 18}, {0.5, 1.5, 2.0}, 10};

} // namespace

TEST_CASE("a mean loss weighs entries by samples", "[loss_curve]") {
  CHECK(mean_loss(curve, 3, 2) == Approx(1));
  CHECK(mean_loss(curve, 3, 4) == Approx((2 * 1 + 2 * 3) / 4.0));
  CHECK(mean_loss(curve, 3, 100) == Approx((2 * 4 + 4 * 3 + 2 * 1) / 8.0));
  CHECK(mean_loss(curve, 1, 4) == Approx(4));
  CHECK_FALSE(mean_loss(curve, 0, 4));
  CHECK_FALSE(mean_loss({}, 0, 4));
}

TEST_CASE("a loss is reached when the mean of a whole window is there",
          "[loss_curve]") {
  CHECK_FALSE(first_at(curve, 0.5, 2));
  const auto at_once = first_at(curve, 4, 2);
  REQUIRE(at_once);
  CHECK(at_once->samples == 2);
  CHECK(at_once->seconds == 0.5);
  const auto later = first_at(curve, 4, 4); // the first entry is half a window
  REQUIRE(later);
  CHECK(later->samples == 6);
  CHECK(later->seconds == 1.5);
  CHECK(first_at(curve, 2, 4)->samples == 8); // the mean of 3, 3, 1, 1
  auto timeless = curve;
  timeless.seconds.clear();
  CHECK_FALSE(first_at(timeless, 2, 4)->seconds);
}

TEST_CASE("a loss at a time is of the entries that ended by then", "[loss_curve]") {
  CHECK(loss_after(curve, 1.5, 2) == Approx(3));
  CHECK(loss_after(curve, 1.4, 2) == Approx(4));
  CHECK(loss_after(curve, 9, 2) == Approx(1));
  CHECK_FALSE(loss_after(curve, 0.4, 2));
  auto disordered = curve; // the second entry ends last
  disordered.seconds = {0.5, 3, 2};
  CHECK(loss_after(disordered, 2.5, 2) == Approx(4));
}

} // namespace troupe::loss_curve_test
