// SPDX-License-Identifier: BSD-3-Clause
// The meetings that a stage has, and the meetings between the pieces of its passes.

#include "actors/pipeline/stage_meetings.hpp"

#include "actors/pipeline/simulated_stage.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

namespace troupe::stage_meetings_test {

using Catch::Approx;

namespace {

constexpr op all_passes[] = {op::forward, op::backward, op::input_gradient,
                             op::weight_gradient};

/// The meetings of a stage in a simulation.
struct met_stage {
  explicit met_stage(run_plan made) : plan(std::move(made)) {}

  /// A letter for each kind of meeting that the stage has: s, l and e.
  std::string kinds() {
    auto all = meetings.list();
    std::string result;
    for (const auto& [kind, letter] :
         {std::pair{meeting_kind::shards, 's'}, std::pair{meeting_kind::layers, 'l'},
          std::pair{meeting_kind::experts, 'e'}})
      if (all[kind] != nullptr)
        result += letter;
    for (int k = static_cast<int>(meeting_kind::directions); k < meeting_kinds; ++k)
      CHECK(all[static_cast<meeting_kind>(k)] == nullptr); // meetings of updates
    return result;
  }

  /// A letter for each pass with meetings by layer.
  std::string by_layer() const {
    std::string result;
    for (const op what : all_passes)
      if (meetings.by_layer(what))
        result += letter_of(what);
    return result;
  }

  woven_action weave(op what) {
    const action a{what, 0, 0, 0};
    auto pass = work.pieces({a, {}, 0, true, true, meetings.by_layer(what)});
    return meetings.weave(a, 0, true, std::move(pass));
  }

  run_plan plan;
  simulated_stage work{plan, {0, 0, 0}};
  stage_meetings meetings{plan, {0, 0, 0}, {}, nullptr};
};

run_plan spread_experts() {
  auto plan = tiny::replicas("ring", 2, 1, 8);
  plan.mesh[axis::expert] = 2;
  return plan;
}

run_plan in_shards(run_plan plan) {
  plan.mesh[axis::tensor] = 2;
  plan.work.simulated().sums = 1;
  return plan;
}

} // namespace

TEST_CASE("a stage has the meetings that its plan asks for", "[stage_meetings]") {
  CHECK(met_stage{tiny::simulation(one_f_one_b(), {2, 4})}.kinds().empty());
  CHECK(met_stage{tiny::replicas("ring", 2, 2, 8)}.kinds().empty());
  CHECK(met_stage{tiny::replicas("zero1", 2, 2, 8)}.kinds().empty());
  CHECK(met_stage{tiny::replicas("zero2", 2, 2, 8)}.kinds() == "l");
  CHECK(met_stage{in_shards(tiny::replicas("zero3", 2, 2, 8))}.kinds() == "sl");
  CHECK(met_stage{spread_experts()}.kinds() == "e");
}

TEST_CASE("by ZeRO 2 who makes weights' gradients goes by layer, by ZeRO 3 all do",
          "[stage_meetings]") {
  CHECK(met_stage{tiny::replicas("zero1", 2, 2, 8)}.by_layer().empty());
  CHECK(met_stage{tiny::replicas("zero2", 2, 2, 8)}.by_layer() == "BW");
  CHECK(met_stage{tiny::replicas("zero3", 2, 2, 8)}.by_layer() == "FBIW");
}

TEST_CASE(
  "parameters are gathered where they are read, and gradients summed where they "
  "are made",
  "[stage_meetings]") {
  met_stage s{tiny::replicas("zero3", 2, 2, 8)};
  CHECK(to_string(s.weave(op::forward))
        == "begins gather 0\n"
           "layer 0; needs gather 0; begins gather 1\n"
           "layer 1; needs gather 1\n");
  CHECK(to_string(s.weave(op::input_gradient))
        == "begins gather 1\n"
           "layer 1; needs gather 1; begins gather 0\n"
           "layer 0; needs gather 0\n");
  CHECK(to_string(s.weave(op::weight_gradient))
        == "layer 1; ends in sum 1\n"
           "layer 0; ends in sum 0\n"
           "piece; needs sum 1, sum 0\n");
}

TEST_CASE("shards of a stage whose layers are shared out meet in both ways",
          "[stage_meetings]") {
  met_stage s{in_shards(tiny::replicas("zero3", 2, 1, 8))};
  CHECK(to_string(s.weave(op::backward))
        == "begins gather 0\n"
           "layer 0; needs gather 0; ends in shards 0\n"
           "layer 0; needs shards 0; ends in sum 0\n"
           "piece; needs sum 0\n");
}

TEST_CASE("what experts take of a pass is not the stage's own", "[stage_meetings]") {
  met_stage alone{tiny::simulation(one_f_one_b(), {1, 4})}, with{spread_experts()};
  const auto shares = [](met_stage& s) {
    double sum = 0;
    for (const auto& p : s.weave(op::forward).pieces)
      sum += p.share;
    return sum;
  };
  CHECK(alone.meetings.stage_share() == 1);
  CHECK(shares(alone) == Approx(1));
  CHECK(with.meetings.stage_share() == Approx(2.0 / 3));
  CHECK(shares(with) == Approx(2.0 / 3));
  CHECK(to_string(with.weave(op::forward))
        == "layer 0; ends in experts 0\n"
           "layer 0; needs experts 0\n");
}

} // namespace troupe::stage_meetings_test
