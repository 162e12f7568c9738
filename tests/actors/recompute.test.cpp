// SPDX-License-Identifier: BSD-3-Clause
// Forwards that run again before their backwards: the same bits, in less memory, for
// the time of one more forward.

#include "actors/proof/proof.hpp"
#include "plan/replica_rules.hpp"
#include "plan/stage_layers.hpp"
#include "plan/stage_pools.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/program.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace troupe::recompute_test {

using Catch::Matchers::ContainsSubstring;

namespace {

constexpr nanoseconds ms = 1'000'000;

run_result finished(run_plan plan) {
  if (plan.work)
    keep_for_proofs(plan);
  REQUIRE(validation_error(plan).empty());
  auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  CHECK(result.late_allocations == 0);
  return result;
}

nanoseconds makespan(schedule sch, const shape& dims, recomputation how,
                     int units = 0) {
  sch.recomputes = how;
  auto plan = tiny::simulation(sch, dims, 1, 2, 0);
  plan.recomputed_units = units;
  plan.work.simulated().buckets = 4;
  return finished(plan).sums.makespan;
}

/// Each action of one kind in a record, as often as the action ran.
std::vector<action> all_of(op what, const record& ran) {
  std::vector<action> result;
  for (const auto& row : ran)
    for (const auto& s : row)
      if (s.action.op == what && !s.part)
        result.push_back(s.action);
  std::ranges::sort(result);
  return result;
}

/// A run that recomputes has the bits of a run that keeps all activations, and proves
/// its record.
void check_same_bits(run_plan plan, const run_result& all, recomputation how,
                     int units) {
  plan.sch.recomputes = how;
  plan.recomputed_units = units;
  CAPTURE(static_cast<int>(how), units);
  keep_for_proofs(plan);
  const auto again = finished(plan);
  CHECK(again.loss == all.loss);
  CHECK((again.parameters == all.parameters));
  const auto backwards = all_of(op::backward, all.actions).size()
                         + all_of(op::input_gradient, all.actions).size();
  CHECK(all_of(op::recompute, again.actions).size() == backwards);
  CHECK(all_of(op::forward, again.actions) == all_of(op::forward, all.actions));
  for (const auto& p : prove(plan, again)) {
    INFO(p.name << ": " << p.detail);
    CHECK(!p.fails());
  }
}

} // namespace

TEST_CASE("a run that recomputes has the bits of one that keeps all", "[recompute]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const auto& sch : {gpipe(), one_f_one_b(), chimera(), pipedream(2), two_bw(),
                          interleaved(2), zb_h2(), zb_v(), dualpipev()}) {
    const shape dims{sch.where.stages_a_rank == 2 ? 8 : 4, 8, 2};
    const auto plan = tiny::training_of(sch, dims, clock, tiny::gpt(2 * dims.stages));
    INFO(sch.name);
    const auto all = finished(plan);
    check_same_bits(plan, all, recomputation::late, 0);
    check_same_bits(plan, all, recomputation::ahead, 0);
    check_same_bits(plan, all, recomputation::late, 1);
  }
}

TEST_CASE("a stage recomputes its blocks one, two or three at once", "[recompute]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const auto& sch : {one_f_one_b(), zb_h1()}) {
    const auto plan = tiny::training_of(sch, {2, 4, 2}, clock, tiny::gpt(14));
    INFO(sch.name);
    const auto all = finished(plan);
    for (const int units : {1, 2, 3, 7, 100})
      check_same_bits(plan, all, recomputation::ahead, units);
  }
}

TEST_CASE("shards, replicas and experts have their part in what runs again",
          "[recompute]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const tiny::mesh_of_ranks& mesh :
       {tiny::mesh_of_ranks{.tensor = 2},
        {.tensor = 2, .by_sequence = true},
        {.data = 2, .exchange = "zero1"},
        {.data = 2, .exchange = "zero2"},
        {.data = 2, .exchange = "zero3"},
        {.experts = true, .noise = 0.3},
        {.data = 2, .expert = 2, .experts = true, .noise = 0.3},
        {.tensor = 2, .stored = precision::bf16}})
    for (const auto& sch : {one_f_one_b(), zb_h1()}) {
      const auto plan = tiny::training_on(mesh, sch, {2, 4, 2}, clock);
      INFO(mesh.text() << " " << sch.name);
      const auto all = finished(plan);
      check_same_bits(plan, all, recomputation::late, 0);
      if (plan.mesh[axis::data] == 1 || !shares_out(plan, shared_out::gradients))
        check_same_bits(plan, all, recomputation::ahead, 1);
    }
}

TEST_CASE("a stage that recomputes keeps no stash but one", "[recompute]") {
  auto plan = tiny::training_of(gpipe(), {2, 16, 1}, clock_kind::virtual_time);
  const auto kept = pools_of(plan, {});
  plan.sch.recomputes = recomputation::late;
  const auto again = pools_of(plan, {});
  CHECK(kept.stashes == 16);
  CHECK(again.stashes == 1);
  CHECK(again.bytes() < kept.bytes());
  plan.sch = zb_h2(); // activations between I and W stay
  plan.sch.recomputes = recomputation::late;
  CHECK(pools_of(plan, {}).stashes == plan.bounds_of({0, 0}).split_backward + 1);
}

TEST_CASE("of blocks a stage keeps inputs, and the stash of the largest segment",
          "[recompute]") {
  // 8 blocks of 8 values, sequences of 4 in microbatches of 2: the embedding and the
  // head are layers of the first and the last block.
  auto plan = tiny::training_of(gpipe(), {1, 16, 1}, clock_kind::virtual_time);
  plan.sch.recomputes = recomputation::late;
  const auto whole = pools_of(plan, {});
  std::int64_t last = whole.stash;
  for (const int units : {4, 2, 1}) {
    plan.recomputed_units = units;
    const auto pools = pools_of(plan, {});
    CHECK(segments_of(plan, 0).size() == static_cast<std::size_t>(8 / units));
    CHECK(pools.inputs_slots == 16);
    CHECK(pools.inputs == (8 / units - 1) * padded(2 * 4 * 8));
    CHECK(pools.stash < last);
    CHECK(8 * pools.stash < (units + 2) * whole.stash); // one segment, not all of them
    CHECK(pools.stashes == 1);
    last = pools.stash;
  }
  CHECK(8 * last > whole.stash); // the last segment has the logits
}

TEST_CASE("recomputation takes a forward more of each backward", "[recompute]") {
  const auto late = recomputation::late;
  CHECK(makespan(gpipe(), {4, 8}, late) == (8 + 3) * (1 + 2 + 1) * ms);
  CHECK(makespan(one_f_one_b(), {4, 8}, late) == (8 + 3) * (1 + 2 + 1) * ms);
  CHECK(makespan(zb_h1(), {1, 4}, late) == 4 * (1 + 2 + 1) * ms); // with I, not with W
  CHECK(makespan(dualpipe(), {2, 4}, late) == 4 * (1 + 2 + 1) * ms); // also in pairs
  // Blocks take as much time: the parts that the recomputation does not run, the
  // backward runs.
  for (const int units : {1, 2, 3})
    CHECK(makespan(one_f_one_b(), {4, 8}, late, units) == (8 + 3) * (1 + 2 + 1) * ms);
}

TEST_CASE("a rank that waits for a gradient runs the forward again meanwhile",
          "[recompute]") {
  // rank 0  F0 .  .  .  .  R0 B0 =        R0 F0 while rank 1 runs R0 and B0
  // rank 1  .  F0 R0 B0 =
  const auto late = recomputation::late, ahead = recomputation::ahead;
  CHECK(makespan(gpipe(), {2, 1}, late) == 8 * ms);
  CHECK(makespan(gpipe(), {2, 1}, ahead) == 7 * ms);
  // Of four stages, each but the last hides the recomputation.
  CHECK(makespan(gpipe(), {4, 1}, late) == (4 + 4 * 3) * ms);
  CHECK(makespan(gpipe(), {4, 1}, ahead) == (4 + 3 + 3 * 2) * ms);
  // Two of four blocks: half of a forward is ahead, the rest in the backward.
  CHECK(makespan(gpipe(), {2, 1}, ahead, 2) == 15 * ms / 2);
  CHECK(makespan(one_f_one_b(), {4, 8}, ahead) < makespan(one_f_one_b(), {4, 8}, late));
}

TEST_CASE("recomputations stand in programs before what needs them", "[recompute]") {
  auto sch = one_f_one_b();
  sch.recomputes = recomputation::late;
  std::string program;
  for (const auto& a : generate(sch, {2, 2}, 0))
    program += to_string(a) + " ";
  CHECK(program == "F0 F1 R0 B0 R1 B1 U1 ");
  sch = dualpipe();
  sch.recomputes = recomputation::ahead;
  program.clear();
  for (const auto& a : generate(sch, {2, 4}, 0))
    program += (a.pair == in_pair::first ? "(" : "") + to_string(a)
               + (a.pair == in_pair::second ? ") " : " ");
  CHECK(program == "F0 F2 F1 R2 B2 R0 (F3 B0) R3 B3 R1 I1 W1 U3 U3 ");
}

TEST_CASE("what cannot be recomputed is refused", "[recompute]") {
  auto plan = tiny::training_of(ampnet(), {2, 4, 2}, clock_kind::virtual_time);
  plan.sch.recomputes = recomputation::late;
  CHECK_THAT(validation_error(plan),
             ContainsSubstring("does not keep the weight version"));
  plan.sch = gpipe();
  plan.sch.recomputes = recomputation::late;
  plan.recomputed_units = 1;
  CHECK(validation_error(plan).empty());
  plan.recomputed_units = -1;
  CHECK_THAT(validation_error(plan), ContainsSubstring("at least 1 block"));
  plan.recomputed_units = 1;
  plan.mesh[axis::data] = 2;
  plan.exchange = *parse_exchange("zero3");
  CHECK_THAT(validation_error(plan), ContainsSubstring("--recompute stage"));
  plan.recomputed_units = 0;
  CHECK(validation_error(plan).empty());
  auto simulated = tiny::simulation(plan.sch, {2, 4});
  simulated.recomputed_units = 1;
  CHECK_THAT(validation_error(simulated), ContainsSubstring("--cost buckets=8"));
}

TEST_CASE("a pair may cost less than its two", "[recompute]") {
  auto plan = tiny::simulation(dualpipe(), {2, 4}, 1, 2, 0);
  auto table = tiny::costs(1, 2, 0);
  CHECK(finished(plan).sums.makespan == 12'000'000);
  table.pair = {2'000'000}; // the pair of each rank is 1 ms shorter
  plan.machine.cost = costs_from(table);
  CHECK(finished(plan).sums.makespan == 11'000'000);
}

TEST_CASE("a pair takes as long as its two, in tensor shards and beside experts",
          "[recompute]") {
  const auto mesh =
    GENERATE(tiny::mesh_of_ranks{}, tiny::mesh_of_ranks{.tensor = 2},
             tiny::mesh_of_ranks{.data = 2, .expert = 2, .experts = true});
  const auto sch = dualpipe();
  auto plan = tiny::training_on(mesh, sch, {2, 6, 1}, clock_kind::virtual_time);
  plan.machine.cost = costs_by_operations();
  plan.work->batch = 2 * mesh.data * 6; // equal microbatches
  // The time of each action of a stage alone; an action in two halves takes the sum.
  std::map<std::pair<op, int>, nanoseconds> alone;
  std::map<std::pair<int, int>, nanoseconds> in_pairs; // by stages
  const auto result = finished(plan);
  for (int rank = 0; rank < 2; ++rank) {
    const auto program = generate(sch, plan.dims, rank);
    std::map<std::tuple<op, int, int>, nanoseconds> took;
    for (const auto& a : result.actions[static_cast<std::size_t>(rank * mesh.tensor)])
      if (a.expert < 0)
        took[{a.action.op, a.action.stage, a.action.microbatch}] += a.end - a.start;
    const auto length = [&](const action& a) {
      return took.at({a.op, a.stage, a.microbatch});
    };
    for (std::size_t i = 0; i < program.size(); ++i)
      if (const auto& a = program[i]; a.pair == in_pair::first) {
        in_pairs[{a.stage, program[i + 1].stage}] = length(a) + length(program[i + 1]);
        ++i;
      } else {
        alone[{a.op, a.stage}] = length(a);
      }
  }
  REQUIRE(in_pairs.size() >= 2);
  for (const auto& [stages, both] : in_pairs) {
    const auto [forward, back] = stages;
    const auto backward =
      alone.contains({op::backward, back})
        ? alone[{op::backward, back}]
        : alone[{op::input_gradient, back}] + alone[{op::weight_gradient, back}];
    INFO(mesh.text() << ": F of stage " << forward << ", B of stage " << back);
    CHECK(std::abs(both - alone[{op::forward, forward}] - backward) <= 4); // rounded
  }
}

} // namespace troupe::recompute_test
