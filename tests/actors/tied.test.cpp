// SPDX-License-Identifier: BSD-3-Clause
// Tied embeddings: the first and the last stage hold one matrix, and add both gradients
// before each update. The actors' results are compared with the plain loop.

#include "actors/meetings/tie_meeting.hpp"
#include "actors/proof/proof.hpp"
#include "plan/stage_pools.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace troupe::tied_test {

using Catch::Matchers::ContainsSubstring;

namespace {

struct tied_mesh {
  int data = 1;
  int tensor = 1;
  const char* exchange = "ring";
};

run_plan tied(const schedule& sch, shape dims, tied_mesh mesh = {},
              clock_kind clock = clock_kind::virtual_time, bool clips = true) {
  auto model = tiny::gpt(4);
  model.tied = true;
  auto plan =
    tiny::training_of(sch, dims, clock, model, (2 * dims.microbatches + 1) * mesh.data);
  plan.mesh[axis::data] = mesh.data;
  plan.mesh[axis::tensor] = mesh.tensor;
  plan.exchange = find_exchange(mesh.exchange);
  if (mesh.tensor > 1)
    plan.work->shards = *make_shards<float>(model, mesh.tensor);
  if (clips)
    plan.work->optimizer.clip = 0.1;
  return plan;
}

/// Runs a plan, and checks all proofs of the result.
run_result proved(run_plan plan) {
  keep_for_proofs(plan);
  INFO(validation_error(plan));
  REQUIRE(validation_error(plan).empty());
  auto result = perform(plan);
  INFO(plan.sch.name << " " << plan.mesh[axis::data] << "x" << plan.dims.stages << "x"
                     << plan.mesh[axis::tensor] << " "
                     << (plan.exchange ? plan.exchange->name : "") << ": "
                     << result.failure);
  REQUIRE(result.outcome == ending::finished);
  CHECK(result.reserved_bytes == bytes_needed(plan));
  CHECK(result.late_allocations == 0);
  for (const auto& p : prove(plan, result)) {
    INFO(p.name << ": " << p.detail);
    CHECK(!p.fails());
  }
  return result;
}

void check_copies(const run_plan& plan, const run_result& result) {
  const auto both = *plan.work->whole.tied();
  const auto& embedding = result.parameters[both.embedding.layer];
  const auto& head = result.parameters[both.head.layer];
  CHECK(std::equal(embedding.begin() + both.embedding.offset,
                   embedding.begin() + both.embedding.offset + both.values,
                   head.begin() + both.head.offset));
}

} // namespace

#ifndef TROUPE_TSAN // virtual time has one thread, and is slow there

TEST_CASE("tied training equals the plain loop to the bit, under every flush schedule "
          "and 2bw",
          "[tied]") {
  const auto name = GENERATE("naive", "gpipe", "1f1b", "chimera", "2bw");
  const int stages = GENERATE(1, 2, 4);
  const auto sch = *find_schedule(name);
  if (const shape dims{stages, 4, 3}; validation_error(sch, dims).empty()) {
    const auto plan = tied(sch, dims);
    check_copies(plan, proved(plan));
  }
}

TEST_CASE("tied training is right over data replicas, tensor shards and every ZeRO",
          "[tied]") {
  const auto mesh = GENERATE(tied_mesh{2, 1, "ring"}, tied_mesh{3, 1, "zero1"},
                             tied_mesh{2, 1, "zero2"}, tied_mesh{3, 1, "zero3"},
                             tied_mesh{1, 2, "ring"}, tied_mesh{2, 2, "zero1"},
                             tied_mesh{2, 2, "zero3"});
  const auto name = GENERATE("1f1b", "chimera", "2bw");
  for (const int stages : {1, 2, 4})
    if (const shape dims{stages, 4, 2};
        validation_error(*find_schedule(name), dims).empty()
        && tests::tries(5, {std::to_string(mesh.data), mesh.exchange, name,
                            std::to_string(mesh.tensor), std::to_string(stages)})) {
      const auto plan = tied(*find_schedule(name), dims, mesh);
      check_copies(plan, proved(plan));
    }
}

TEST_CASE("times of tied training are modelled, whoever has a share of the matrix",
          "[tied]") {
  const auto mesh = GENERATE(tied_mesh{1, 1, "ring"}, tied_mesh{5, 1, "zero1"},
                             tied_mesh{3, 2, "zero3"});
  const auto name = GENERATE("1f1b", "2bw", "chimera");
  auto plan = tied(*find_schedule(name), {2, 4, 2}, mesh);
  const auto was = perform(plan);
  plan.observed.model_times = true;
  const auto modelled = perform(plan);
  INFO(name << " " << mesh.data << " " << mesh.exchange << ": " << modelled.failure);
  REQUIRE(modelled.outcome == ending::finished);
  CHECK(modelled.sums.makespan == was.sums.makespan);
  CHECK(modelled.sums.busy == was.sums.busy);
}

#endif

TEST_CASE("tied training in real time keeps both copies equal", "[tied]") {
  const auto plan =
    tied(*find_schedule("2bw"), {3, 4, 6}, {2, 1, "zero1"}, clock_kind::real);
  check_copies(plan, proved(plan));
}

TEST_CASE("what cannot keep a tied matrix one is refused with the reason", "[tied]") {
  const auto refused = [](const char* schedule, const char* exchange) {
    return validation_error(tied(*find_schedule(schedule), {2, 4, 2}, {2, 1, exchange},
                                 clock_kind::real, false));
  };
  CHECK_THAT(refused("pipedream", "ring"), ContainsSubstring("different times"));
  CHECK_THAT(refused("ampnet", "server:async"), ContainsSubstring("different times"));
  CHECK_THAT(refused("1f1b", "server:async"), ContainsSubstring("one by one"));
  CHECK_THAT(refused("1f1b", "hogwild"), ContainsSubstring("one by one"));
  auto plan = tied(*find_schedule("1f1b"), {2, 4, 2});
  plan.work->optimizer.scope = clip_scope::stage;
  CHECK_THAT(validation_error(plan), ContainsSubstring("clip=stage"));
}

} // namespace troupe::tied_test
