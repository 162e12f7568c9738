// SPDX-License-Identifier: BSD-3-Clause
// Local rules that a user defines, run by actors.

#include "actors/proof/proof.hpp"
#include "schedules/check.hpp"
#include "schedules/prediction.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>

namespace troupe::own_rule_test {

using Catch::Matchers::ContainsSubstring;

namespace {

using chooser = std::function<std::optional<action>(const local_view&)>;

schedule ruled(chooser choose, int keys = 4) {
  auto sch = ampnet(keys, 8);
  sch.name = "own rule";
  sch.order = user_rule{std::move(choose), keys};
  return sch;
}

/// AMPNet's rule, written as a user would.
std::optional<action> backwards_first(const local_view& view) {
  const auto lower = [](const action& a, const action& b) {
    return std::tuple{a.op != op::backward, a.microbatch, a.stage}
           < std::tuple{b.op != op::backward, b.microbatch, b.stage};
  };
  return *std::ranges::min_element(view.arrived, lower);
}

/// Forwards as long as the rank may hold more.
std::optional<action> forwards_first(const local_view& view) {
  const bool full = view.held == view.may_hold;
  for (const auto& a : view.arrived)
    if ((a.op == op::forward) != full)
      return a;
  return view.arrived.front();
}

} // namespace

TEST_CASE("AMPNet's rule as one's own does what AMPNet does", "[own_rule]") {
  const int keys = GENERATE(1, 3, 8);
  const shape dims{3, 8, 3};
  const auto cost = [](const action& a) {
    return a.op == op::update ? 0 : a.op == op::forward ? 1 : 2;
  };
  const auto none = [](const action&) { return 0; };
  CHECK(draw(predict(ruled(backwards_first, keys), dims, cost, none), 1000)
        == draw(predict(ampnet(keys, 8), dims, cost, none), 1000));
  auto own = tiny::training_of(ruled(backwards_first, keys), dims,
                               clock_kind::virtual_time),
       known = tiny::training_of(ampnet(keys, 8), dims, clock_kind::virtual_time);
  const auto a = perform(own), b = perform(known);
  REQUIRE(a.outcome == ending::finished);
  CHECK(a.loss == b.loss);
  CHECK((a.parameters == b.parameters));
}

TEST_CASE("a rule of one's own trains, and replays to the bit", "[own_rule]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto sch = ruled(forwards_first);
  const shape dims{3, 8, 3};
  CHECK(validation_error(sch, dims).empty());
  CHECK_FALSE(check(sch, dims).has_value());
  const auto plan = tiny::training_of(sch, dims, clock);
  REQUIRE(validation_error(plan).empty());
  const auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  for (const auto& p : prove(plan, result)) {
    INFO(p.name << ": " << p.detail);
    CHECK(!p.fails());
  }
  for (const int held : result.sums.peak_activations)
    CHECK(held <= 4);
}

TEST_CASE("a rule that flushes updates once a batch", "[own_rule]") {
  auto sch = ruled(forwards_first, 3);
  sch.weights = weights::flush;
  const shape dims{2, 4, 2};
  for (const int every : {1, 2, 8, 100}) {
    sch.update_every = every;
    CHECK_THAT(validation_error(sch, dims),
               ContainsSubstring("set update_every to 0, or weights to latest"));
  }
  sch.update_every = GENERATE(0, 4);
  CHECK(validation_error(sch, dims).empty());
  const auto result = perform(tiny::training_of(sch, dims, clock_kind::virtual_time));
  INFO(result.failure);
  CHECK(result.outcome == ending::finished);
}

TEST_CASE("a rule that chooses what has not arrived, or nothing, ends the run in words",
          "[own_rule]") {
  const auto failure = [](chooser choose) {
    auto plan =
      tiny::training_of(ruled(std::move(choose)), {2, 4, 2}, clock_kind::virtual_time);
    const auto result = perform(plan);
    CHECK(result.outcome == ending::failed);
    return result.failure;
  };
  CHECK_THAT(failure([](const local_view&) {
               return std::optional{action{op::backward, 0, 0, 3}};
             }),
             ContainsSubstring("chose B3 of stage 0, which has not arrived"));
  CHECK_THAT(
    failure([](const local_view&) { return std::optional<action>{}; }),
    ContainsSubstring(
      "waits for another input, as the rank's rule did not choose F0 of stage 0"));
  CHECK_THAT(validation_error(ruled(chooser{}), {2, 4}), ContainsSubstring("an order"));
}

} // namespace troupe::own_rule_test
