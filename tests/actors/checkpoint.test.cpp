// SPDX-License-Identifier: BSD-3-Clause
// The state that a run saves between batches, and runs that resume from that state: the
// bits are those of a run that never stopped.

#include "actors/checkpoints/gathered_state.hpp"
#include "plan/stage_pools.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace troupe::checkpoint_test {

using Catch::Matchers::ContainsSubstring;

namespace {

using all_saved = std::vector<std::shared_ptr<const training_state>>;

run_result finished(const run_plan& plan, run_callbacks told = {}) {
  INFO(plan.sch.name);
  REQUIRE(validation_error(plan) == "");
  auto result = perform(plan, std::move(told));
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  return result;
}

/// Runs a plan with checkpoints; returns all checkpoints.
all_saved saved_by(run_plan plan, int every, run_result& result) {
  all_saved all;
  plan.copies.checkpoint_every = every;
  result = finished(plan, {.save = [&](const training_copies& one) {
                      all.push_back(std::make_shared<const training_state>(
                        whole_of(plan, one, savers::first_holder).value()));
                    }});
  return all;
}

/// The same plan from a checkpoint to the end.
run_plan rest_of(run_plan plan, const std::shared_ptr<const training_state>& from) {
  plan.dims.steps -= from->batches;
  resume_from(from, plan);
  return plan;
}

const std::vector<int> stage_counts{2, 4};
const std::vector<schedule> by_formula{one_f_one_b(), chimera(),          two_bw(),
                                       pipedream(1),  pipedream(1, true), pipedream(2)};

const std::vector<tiny::mesh_of_ranks> meshes{
  {},
  {.clips = true},
  {.data = 2, .exchange = "ring"},
  {.data = 2, .exchange = "zero1", .clips = true},
  {.data = 2, .exchange = "zero2"},
  {.data = 2, .exchange = "zero3"},
  {.data = 2, .exchange = "server"},
  {.tensor = 2},
  {.data = 2, .expert = 2, .experts = true},
  {.data = 2, .expert = 2, .exchange = "zero1", .experts = true},
  {.data = 4, .expert = 2, .experts = true},
  {.tensor = 2, .by_sequence = true},
  {.data = 2, .exchange = "zero1", .stored = precision::bf16},
  {.data = 2, .expert = 2, .experts = true, .stored = precision::bf16},
};

} // namespace

TEST_CASE("a run that goes on from a checkpoint has the bits of one that never stopped",
          "[checkpoint]") {
  const auto& mesh = GENERATE(from_range(meshes));
  const auto& sch = GENERATE(from_range(by_formula));
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const int stages = GENERATE(from_range(stage_counts));
  if (!tests::tries(20, {mesh.text(), tiny::kind_of(sch), std::to_string(stages)}))
    return;
  auto plan = tiny::training_on(mesh, sch, {stages, 4, 6}, clock);
  plan.work->optimizer.schedule = {.cosine = true, .warmup = 9, .floor = 0.1};
  INFO(sch.name << " with " << mesh.text() << ", " << stages << " stages");
  const auto undisturbed = finished(plan);
  run_result with_checkpoints;
  const auto all = saved_by(plan, 2, with_checkpoints);
  REQUIRE(all.size() == 3); // the last at the end
  CHECK((all[2]->parameters == undisturbed.parameters));
  CHECK((with_checkpoints.parameters == undisturbed.parameters));
  CHECK(with_checkpoints.loss == undisturbed.loss);
  for (const auto& one : {all[0], all[1]}) {
    INFO("from " << one->batches);
    const auto rest = finished(rest_of(plan, one));
    CHECK((rest.parameters == undisturbed.parameters));
    CHECK((rest.gradients == undisturbed.gradients));
    const auto losses = static_cast<std::ptrdiff_t>(rest.loss.size());
    CHECK(
      rest.loss
      == std::vector<double>(undisturbed.loss.end() - losses, undisturbed.loss.end()));
  }
}

TEST_CASE("what is saved is the network after that batch", "[checkpoint]") {
  const auto& mesh = GENERATE(from_range(meshes));
  auto plan =
    tiny::training_on(mesh, one_f_one_b(), {2, 4, 3}, clock_kind::virtual_time);
  INFO(mesh.text());
  run_result whole;
  const auto all = saved_by(plan, 2, whole);
  REQUIRE(all.size() == 2);
  CHECK(all[0]->batches == 2);
  CHECK(all[1]->batches == 3);
  CHECK(all[0]->older.empty());
  CHECK(all[0]->state.size() == 2);
  plan.dims.steps = 2;
  CHECK(all[0]->parameters == finished(plan).parameters);
}

TEST_CASE("each value is saved by one stage, and counted in its rank's memory",
          "[checkpoint]") {
  const auto& mesh = GENERATE(from_range(meshes));
  const auto& sch = GENERATE(from_range(by_formula));
  auto plan = tiny::training_on(mesh, sch, {2, 4, 4}, clock_kind::virtual_time);
  plan.work->optimizer.name = "adamw";
  plan.work->optimizer.momentum = 0;
  INFO(sch.name << " with " << mesh.text());
  const auto without = bytes_needed(plan);
  plan.copies.checkpoint_every = 2;
  std::int64_t versions = 0, moments = 0;
  const auto result = finished(
    plan, {.save = [&](const training_copies& copies) {
      versions = moments = 0;
      for (const auto& one : copies.stages) {
        CHECK(one.updates
              == copies.batches * plan.dims.microbatches
                   / update_size(plan.sch, plan.dims));
        if (!one.versions.empty())
          versions += values_of(pieces_of(plan, one.where, shared_out::parameters));
        if (!one.state.empty())
          moments += values_of(pieces_of(plan, one.where, shared_out::optimizer_state));
      }
    }});
  CHECK(versions == plan.work->whole.values());
  CHECK(moments == plan.work->whole.values());
  const auto with = bytes_needed(plan);
  std::int64_t more = 0;
  for (std::size_t rank = 0; rank < with.size(); ++rank) {
    CHECK(result.peak_bytes[rank] <= with[rank]);
    more += with[rank] - without[rank];
  }
  const std::int64_t least =
    3 * plan.work->whole.values() * std::int64_t{sizeof(float)};
  CHECK(more >= least);
}

// A local rule finishes all microbatches in flight before a checkpoint, so checkpoints
// change the run.
TEST_CASE("under a local rule a run goes on as one with the same checkpoints did",
          "[checkpoint]") {
  const auto plan =
    tiny::training_on({}, ampnet(3, 3), {3, 4, 6}, clock_kind::virtual_time);
  run_result whole;
  const auto all = saved_by(plan, 2, whole);
  REQUIRE(all.size() == 3);
  for (const auto& one : {all[0], all[1]}) {
    auto rest = rest_of(plan, one);
    rest.copies.checkpoint_every = 2;
    const auto went_on = finished(rest, {.save = [](const training_copies&) {}});
    CHECK((went_on.parameters == whole.parameters));
  }
}

TEST_CASE("a run of another schedule and mesh goes on from a checkpoint",
          "[checkpoint]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto on = [&](const tiny::mesh_of_ranks& mesh, const schedule& sch,
                      int stages) {
    return tiny::training_on(mesh, sch, {stages, 4, 6}, clock);
  };
  run_result whole;
  const tiny::mesh_of_ranks alone{.clips = true}, zero{.data = 2, .exchange = "zero1"},
    sharded{.tensor = 2};
  const auto saved = saved_by(on(alone, gpipe(), 4), 2, whole);
  for (const int stages : {1, 2}) {
    const auto rest = finished(rest_of(on(alone, one_f_one_b(), stages), saved[1]));
    CHECK((rest.parameters == whole.parameters));
  }
  const auto by_two = saved_by(on(zero, one_f_one_b(), 2), 2, whole);
  const auto by_four = finished(rest_of(on(zero, gpipe(), 4), by_two[0]));
  CHECK((by_four.parameters == whole.parameters));
  const auto of_shards = saved_by(on(sharded, one_f_one_b(), 2), 4, whole);
  auto by_one = finished(rest_of(on({}, one_f_one_b(), 1), of_shards[0]));
  const auto never_cut = finished(on({}, one_f_one_b(), 1));
  for (std::size_t l = 0; l < by_one.parameters.size(); ++l)
    for (std::size_t i = 0; i < by_one.parameters[l].size(); ++i)
      REQUIRE(by_one.parameters[l][i]
              == Catch::Approx(never_cut.parameters[l][i]).margin(1e-4));
}

TEST_CASE("evaluations count batches from the first that was ever trained on",
          "[checkpoint]") {
  auto plan = tiny::training_on({}, one_f_one_b(), {2, 4, 8}, clock_kind::virtual_time);
  run_result whole;
  const auto saved = saved_by(plan, 4, whole);
  auto rest = rest_of(plan, saved[0]);
  rest.copies.evaluate_every = 3;
  std::vector<int> evaluated;
  finished(rest, {.evaluate = [&](int batches, const std::vector<const float*>&) {
             evaluated.push_back(batches);
           }});
  CHECK(evaluated == std::vector{6});
}

TEST_CASE("what holds no one network between batches is not saved", "[checkpoint]") {
  auto plan = tiny::training_on({.data = 2, .exchange = "server:async"}, one_f_one_b(),
                                {2, 4, 4}, clock_kind::virtual_time);
  plan.copies.checkpoint_every = 1;
  CHECK_THAT(validation_error(plan),
             ContainsSubstring("server:async updates data replicas one "
                               "by one"));
  plan = tiny::training_on({}, pipedream(3), {2, 4, 6}, clock_kind::virtual_time);
  plan.copies.checkpoint_every = 2;
  CHECK_THAT(validation_error(plan), ContainsSubstring("say --checkpoint-every 3"));
  plan.copies.checkpoint_every = 3;
  CHECK(validation_error(plan) == "");
  plan.dims.batches_before = 2;
  CHECK_THAT(
    validation_error(plan),
    ContainsSubstring("cannot continue within an update, after 8 microbatches"));
}

} // namespace troupe::checkpoint_test
