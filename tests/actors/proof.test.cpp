// SPDX-License-Identifier: BSD-3-Clause
// Each proof must refuse a true record with one thing changed: here the computations
// and the record of one pipeline.

#include "actors/proof/proof.hpp"

#include "tests/actors/proved_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

namespace troupe::proof_test {

using namespace tiny;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("runs that are right are refused by no proof", "[refusal]") {
  for (const auto& sch : all_kinds())
    CHECK(run_of(small(sch)).refusals().empty());
  CHECK(run_of(sharded(one_f_one_b())).refusals().empty());
}

TEST_CASE("a value off by one bit is refused with its place and both values",
          "[refusal]") {
  const auto sch = GENERATE(one_f_one_b(), chimera(), pipedream(3), two_bw());
  auto run = run_of(small(sch));
  const auto which = second_of_stage_1(run.plan);
  const bool of_gradient = GENERATE(false, true);
  const int index = GENERATE(0, 5);
  auto& value =
    which.in(of_gradient ? run.result.gradients : run.result.parameters, index);
  const auto right = static_cast<double>(value);
  flip_lowest_bit(value);
  const auto says =
    "stage 1: " + std::string{of_gradient ? "gradient of " : "parameter "}
    + which.what->name + "[" + std::to_string(index) + "]"
    + is_instead(static_cast<double>(value), right);
  CHECK_THAT(run.refusals(), ContainsSubstring("replay: " + says));
  const auto* const other = sch.asynchronous() ? "formula: " : "plain loop: ";
  CHECK_THAT(run.refusals(), ContainsSubstring(other + says));
}

TEST_CASE("a loss off by one bit is refused with its minibatch and both values",
          "[refusal]") {
  const auto sch = GENERATE(gpipe(), pipedream(), ampnet(3, 2));
  auto run = run_of(small(sch));
  const auto right = run.result.loss[1];
  run.result.loss[1] = std::nextafter(right, 0);
  CHECK_THAT(run.refusals(),
             ContainsSubstring("replay: loss of minibatch 1"
                               + is_instead(run.result.loss[1], right)));
  run.result.loss.pop_back();
  CHECK_THAT(run.refusals(), ContainsSubstring("losses instead of"));
}

TEST_CASE("of several differences that with a NaN is the largest", "[refusal]") {
  const auto run = run_of(small(one_f_one_b()));
  const auto which = second_of_stage_1(run.plan);
  const trained right{run.result.loss, run.result.parameters, run.result.gradients};
  const auto apart = [&](const trained& other) {
    return between(*run.plan.work, other, right);
  };
  auto wrong = right;
  wrong.loss[1] += 1e6;
  CHECK(apart(wrong).where == "losses");
  CHECK(apart(wrong).relative > 1e3);
  which.in(wrong.parameters, 5) = std::nanf("");
  which.in(wrong.gradients, 5) += 1e9F; // comes later, and is no larger than a NaN
  const auto found = apart(wrong);
  CHECK(std::isnan(found.relative));
  CHECK(found.where == "parameter " + which.what->name);
  CHECK_THAT(found.first, ContainsSubstring("loss of minibatch 1 is ")
                            && ContainsSubstring("[5] is nan instead of"));
  wrong.parameters = right.parameters;
  CHECK(apart(wrong).where == "gradient of " + which.what->name);
  wrong.loss[0] = std::nan("");
  CHECK(std::isnan(apart(wrong).relative));
  CHECK(apart(wrong).where == "losses");
}

TEST_CASE("the formula refuses every entry of a record that is changed", "[refusal]") {
  const auto sch = GENERATE(from_range(all_kinds()));
  const auto right = run_of(small(sch));
  const auto refused =
    [&](const std::function<void(std::vector<measured_action>&)>& change,
        std::size_t rank) {
      auto result = right.result;
      change(result.actions[rank]);
      return !first_wrong(right.plan, *right.by, result).empty();
    };
  REQUIRE_FALSE(refused([](auto&) {}, 0));
  for (std::size_t rank = 0; rank < right.result.actions.size(); ++rank)
    for (std::size_t i = 0; i < right.result.actions[rank].size(); ++i) {
      const auto a = right.result.actions[rank][i].action;
      INFO(sch.name << ": " << to_string(a, true));
      const auto changed = [&](const auto& change) {
        return refused([&](std::vector<measured_action>& row) { change(row[i]); },
                       rank);
      };
      for (const int by : {-1, 1}) {
        CHECK(changed([&](measured_action& s) { s.version += by; }));
        CHECK(changed([&](measured_action& s) { s.versions_alive += by; }));
        CHECK(changed([&](measured_action& s) { s.action.microbatch += by; }));
        CHECK(changed([&](measured_action& s) { s.action.stage += by; }));
        if (a.op == op::update) {
          CHECK(changed([&](measured_action& s) { s.gradients += by; }));
          CHECK(changed([&](measured_action& s) { s.stalest += by; }));
          CHECK(changed([&](measured_action& s) { s.staleness += by; }));
        }
        if (sch.local_rule()) {
          CHECK(changed([&](measured_action& s) { s.start += by; }));
          CHECK(changed([&](measured_action& s) { s.end += by; }));
        }
      }
      CHECK(changed([](measured_action& s) {
        s.action.op = s.action.op == op::forward ? op::backward : op::forward;
      }));
      CHECK(changed([](measured_action& s) { s.part = true; }));
      CHECK(refused([&](auto& row) { row.erase(row.begin() + static_cast<int>(i)); },
                    rank));
      CHECK(refused(
        [&](auto& row) { row.insert(row.begin() + static_cast<int>(i), row[i]); },
        rank));
      if (i == 0)
        continue;
      // Only an update and a forward that does not read the new version may change
      // places.
      const auto before = right.result.actions[rank][i - 1].action;
      if (before.op != op::update && a.op != op::update)
        CHECK(refused([&](auto& row) { std::swap(row[i - 1], row[i]); }, rank));
    }
}

TEST_CASE("the formula says what is wrong with an entry", "[refusal]") {
  auto run = run_of(small(pipedream()));
  auto& row = run.result.actions[0];
  const auto at = [&](op what, int microbatch) -> measured_action& {
    return *std::ranges::find_if(row, [&](const measured_action& s) {
      return s.action.op == what && s.action.microbatch == microbatch;
    });
  };
  SECTION("a version one too new") {
    ++at(op::forward, 4).version;
    CHECK_THAT(
      run.refusals(),
      ContainsSubstring(
        "formula: rank 0: F4 of stage 0 read version 4, but by the formula 3"));
  }
  SECTION("a version too many alive") {
    ++at(op::update, 4).versions_alive;
    CHECK_THAT(run.refusals(),
               ContainsSubstring("U4 of stage 0 left 3 versions alive"));
  }
  SECTION("backwards that have changed places") {
    std::swap(at(op::backward, 1), at(op::backward, 2));
    CHECK_THAT(run.refusals(), ContainsSubstring("formula: rank 0: B2 of stage 0 ran "
                                                 "where the formula has microbatch 1"));
  }
  SECTION("an update twice") {
    row.insert(std::ranges::find(row, at(op::update, 3).start, &measured_action::start),
               at(op::update, 3));
    CHECK_THAT(run.refusals(), ContainsSubstring("formula: ")
                                 && ContainsSubstring("replay: U3 of stage 0"));
  }
}

TEST_CASE("another time than the paper's is refused", "[refusal]") {
  auto plan = small(GENERATE(naive(), gpipe(), one_f_one_b(), chimera()));
  plan.machine.links = {};
  auto run = run_of(plan);
  REQUIRE(run.refusals().empty());
  SECTION("of the run") {
    ++run.result.sums.makespan;
    CHECK_THAT(run.refusals(), ContainsSubstring("formula: the run took "));
  }
  SECTION("of a rank") {
    --run.result.sums.busy[1];
    CHECK_THAT(run.refusals(), ContainsSubstring("formula: rank 1 was idle for "));
  }
}

TEST_CASE("a replay refuses a record that cannot have happened", "[refusal]") {
  auto run = run_of(small(GENERATE(one_f_one_b(), pipedream())));
  const auto erase_first = [&](std::size_t rank, op operation) {
    auto& row = run.result.actions[rank];
    row.erase(std::ranges::find_if(
      row, [&](const measured_action& s) { return s.action.op == operation; }));
  };
  SECTION("without a forward") {
    erase_first(0, op::forward);
    CHECK_THAT(
      run.refusals(),
      ContainsSubstring("replay: stage 0 stops at B0: no backward of the record sends")
        || ContainsSubstring("replay: B0 of stage 0 ran before its forward"));
  }
  SECTION("without a backward") {
    erase_first(1, op::backward);
    CHECK_THAT(run.refusals(), ContainsSubstring("replay: "));
  }
  SECTION("without an update") {
    erase_first(1, op::update);
    CHECK_THAT(run.refusals(), ContainsSubstring("replay: "));
  }
  SECTION("without the last update") {
    auto& row = run.result.actions[1];
    row.pop_back();
    CHECK_THAT(run.refusals(), ContainsSubstring("that no update of the record covers")
                                 || ContainsSubstring("to which not all come"));
  }
  SECTION("with a version that is not there") {
    run.result.actions[0].front().version = 7;
    CHECK_THAT(run.refusals(),
               ContainsSubstring("replay: F0 of stage 0 read version 7"));
  }
}

TEST_CASE("a run that reserves other bytes than announced is refused", "[refusal]") {
  auto run = run_of(small(one_f_one_b()));
  REQUIRE(run.refusals().empty());
  run.result.reserved_bytes[1] += GENERATE(-4, 4);
  CHECK_THAT(run.refusals(), ContainsSubstring("memory: rank 1 has reserved "));
  run.result.processes = 2; // reserve memory for messages too
  CHECK(run.refusals().empty());
}

TEST_CASE("a run is refused by the formula of every other schedule", "[refusal]") {
  for (const auto& sch : all_kinds()) {
    auto run = run_of(small(sch));
    for (const auto& other : all_kinds()) {
      run.by = rule_of(other);
      INFO(sch.name << " judged as " << other.name);
      CHECK((first_wrong(run.plan, *run.by, run.result).empty()
             == (rule_of(sch) == run.by)));
    }
  }
}

TEST_CASE("a schedule that no paper has is told so, and is no failure", "[refusal]") {
  auto mine = one_f_one_b();
  mine.name = "mine";
  const auto run = run_of(small(mine));
  CHECK(run.refusals().empty());
  const auto proofs = prove(run.plan, run.result);
  const auto formula = std::ranges::find(proofs, "formula", &proof::name);
  REQUIRE(formula != proofs.end());
  CHECK(formula->outcome == verdict::no_formula);
}

} // namespace troupe::proof_test
