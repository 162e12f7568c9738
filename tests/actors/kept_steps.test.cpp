// SPDX-License-Identifier: BSD-3-Clause
// Steps that data replicas keep. When a node is lost, the other nodes hold the whole
// last step. A run that resumes there has the bits of an undisturbed run.

#include "actors/checkpoints/gathered_state.hpp"
#include "actors/nodes/node_maps.hpp"
#include "actors/nodes/node_registry.hpp"
#include "actors/pipeline/stage_saver.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_pools.hpp"
#include "tests/actors/nodes.hpp"
#include "tests/actors/slow_relay.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::kept_steps_test {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

struct lost_run {
  tiny::mesh_of_ranks mesh;
  schedule sch;
};

run_plan plan_of(const lost_run& one) {
  auto plan = tiny::training_on(one.mesh, one.sch, {2, 4, 6}, clock_kind::real);
  plan.work->optimizer.name = "adamw";
  plan.work->optimizer.momentum = 0;
  plan.copies.keep_steps = true;
  plan.copies.checkpoint_every = 2; // the link is cut as a checkpoint comes
  return plan;
}

std::vector<std::vector<float>> undisturbed(run_plan plan) {
  plan.copies.keep_steps = false;
  plan.copies.checkpoint_every = 0;
  const auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  return result.parameters;
}

/// Runs a plan on the given number of nodes, and cuts some nodes off when `batches`
/// batches are saved. The other nodes see closed connections: a timeout would depend on
/// the machine's load.
run_result cut_off(const run_plan& plan, int nodes, const std::vector<int>& victims,
                   int batches) {
  nodes_here there{plan, nodes};
  auto ways = relays_before(there.reached_by().nodes, 0ms);
  return there.perform(plan, {.save = [&](const training_copies& all) {
                         for (const int victim : victims)
                           if (all.batches == batches)
                             ways[static_cast<std::size_t>(victim)].reset();
                       }});
}

} // namespace

TEST_CASE("what a lost node had is with the other data replicas, after the last step",
          "[nodes]") {
  const auto one = GENERATE(
    lost_run{{.data = 2}, one_f_one_b()}, lost_run{{.data = 2}, pipedream(1)},
    lost_run{{.data = 2, .tensor = 2}, one_f_one_b()}, lost_run{{.data = 2}, chimera()},
    lost_run{{.data = 4, .expert = 2, .experts = true}, one_f_one_b()});
  const int victim = GENERATE(0, 1);
  INFO(one.sch.name << ' ' << one.mesh.text() << " without node " << victim + 1);
  const auto plan = plan_of(one);
  REQUIRE(validation_error(plan).empty());
  const auto result = cut_off(plan, 2, {victim}, 4);
  CHECK(result.outcome == ending::failed);
  CHECK_THAT(result.failure, ContainsSubstring("is lost"));
  REQUIRE(result.recovered);
  CHECK(result.recovered->batches >= 4);
  CHECK(result.recovered->batches <= 5); // the sixth needs the lost one

  auto rest = plan;
  rest.copies.keep_steps = false;
  rest.copies.checkpoint_every = 0;
  rest.dims.steps -= result.recovered->batches;
  resume_from(result.recovered, rest);
  const auto end = perform(rest);
  REQUIRE(end.outcome == ending::finished);
  CHECK((end.parameters == undisturbed(plan)));
}

TEST_CASE("steps are kept also where no checkpoint is due", "[nodes]") {
  auto plan = plan_of({{.data = 2}, one_f_one_b()});
  plan.copies.checkpoint_every = 0;
  plan.copies.evaluate_every = 5;
  nodes_here there{plan, 2};
  auto& cluster = there.reached_by();
  auto to_second = std::make_unique<slow_relay>(cluster.nodes[1], 0ms);
  cluster.nodes[1].port = to_second->port();
  const auto result =
    there.perform(plan, {.evaluate = [&](int, const auto&) { to_second.reset(); }});
  INFO(result.failure << result.recovery_error);
  REQUIRE(result.recovered);
  CHECK(result.recovered->batches >= 4);
}

TEST_CASE("a node says how far it has come once, step by step", "[nodes]") {
  node_registry all{{"node 1", "node 2"}, 5s, {}};
  all.receive(1, mail::identity{{1, 1}});
  all.receive(1, mail::prepared{.machine = "m"});
  CHECK_NOTHROW(all.await(node_registry::step::prepared, nullptr, 1));
  all.receive(1, mail::prepared{.machine = "other"});
  CHECK(all.facts(1).machine == "m");
  REQUIRE(all.is_gone(1)); // else the next wait would not end
  CHECK_THROWS_WITH(all.await(node_registry::step::connected, nullptr, 1),
                    "node 1 repeated a message about its progress");
  all.receive(2, mail::identity{{2, 2}});
  all.receive(2, mail::connected{});
  REQUIRE(all.is_gone(2));
  CHECK_THROWS_AS(all.await(node_registry::step::prepared, nullptr, 2), node_failure);
}

TEST_CASE("who says that it has lost a node is not taken for lost", "[nodes]") {
  run_status board;
  node_registry all{{"node 1", "node 2", "node 3"}, 20ms, {}};
  for (const std::uint64_t node : {1, 2, 3}) {
    all.receive(static_cast<int>(node), mail::identity{{node, node}});
    all.receive(static_cast<int>(node), mail::prepared{});
  }
  all.begin(board);
  all.receive(1, mail::lost_node{2, "no answer"});
  all.lose(2, "it has closed the connection");
  for (int looks = 0; looks < 20; ++looks) { // 20 ms are over soon
    std::this_thread::sleep_for(20ms);
    CHECK_FALSE(all.is_gone(1));
  }
  CHECK(all.is_gone(2));
  CHECK_THAT(*board.failure(), ContainsSubstring("node 2 is lost"));

  all.receive(1, mail::lost_node{3, "no answer"}); // and nothing more is known
  for (int looks = 0; looks < 500 && !all.is_gone(1); ++looks)
    std::this_thread::sleep_for(20ms);
  CHECK(all.is_gone(1));
}

TEST_CASE("a run that fails by itself is not asked what is left", "[nodes]") {
  auto plan = plan_of({{.data = 2}, one_f_one_b()});
  plan.work->optimizer.rate = 1e30;
  plan.copies.checkpoint_every = 0;
  nodes_here there{plan, 2};
  const auto result = there.perform(plan);
  CHECK_THAT(result.failure, ContainsSubstring("not finite"));
  CHECK_FALSE(result.recovered);
  CHECK(result.recovery_error == "no step was kept");
}

TEST_CASE("what a run keeps of its steps is counted before it begins", "[nodes]") {
  auto plan = plan_of({{.data = 2}, one_f_one_b()});
  plan.copies.checkpoint_every = 0;
  const auto with = bytes_needed(plan);
  plan.copies.keep_steps = false;
  const auto without = bytes_needed(plan);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    std::int64_t values = 0;
    for (const auto& where : plan.hosted_by(rank))
      for (const auto& layer : layers_of(plan, where))
        for (const auto& p : layer->parameters())
          values += p.values();
    const auto r = static_cast<std::size_t>(rank);
    CHECK(with[r] - without[r] >= 2 * 3 * values * std::int64_t{sizeof(float)});
  }
}

TEST_CASE("what was lost with all its replicas does not survive", "[nodes]") {
  const auto plan = plan_of({{.data = 2}, one_f_one_b()}); // one rank for each node
  CHECK_FALSE(cut_off(plan, 4, {0, 2}, 2).recovered);
  CHECK(cut_off(plan, 4, {0, 3}, 2).recovered);
  CHECK(cut_off(plan, 4, {1}, 2).recovered); // stage 0 has two replicas
}

TEST_CASE("a run that keeps its steps has the bits of one that does not", "[nodes]") {
  const auto sch = GENERATE(one_f_one_b(), two_bw(), pipedream(2));
  auto plan = plan_of({{.data = 2}, sch});
  std::vector<int> saved;
  const auto result = perform(
    plan, {.save = [&](const training_copies& all) {
      saved.push_back(whole_of(plan, all, savers::first_holder).value().batches);
    }});
  INFO(sch.name << ' ' << result.failure);
  REQUIRE(result.outcome == ending::finished);
  CHECK(saved == std::vector{2, 4, 6});
  CHECK((result.parameters == undisturbed(plan)));
  CHECK_FALSE(result.recovered);
}

TEST_CASE("a stage keeps its last two steps, as they were", "[nodes]") {
  const auto plan = plan_of({{.data = 2}, one_f_one_b()});
  const position where{1, 0, 1};
  memory_account account;
  const auto layers = layers_of(plan, where);
  stage_saver saver{
    plan, where,
    std::make_shared<const optimizer>(plan.work->optimizer, layers, 1, account),
    account};
  std::vector<std::unique_ptr<pool>> pools;
  std::vector<buffer> held;
  aged_version newest{0, {}};
  for (const auto values : buckets_of(plan, where)) {
    pools.push_back(std::make_unique<pool>("a test", 1, values, account));
    held.push_back(pools.back()->acquire());
    newest.buckets.emplace_back(held.back().data());
  }
  for (int batches = 1; batches <= 3; ++batches) {
    for (std::size_t b = 0; b < pools.size(); ++b)
      std::fill_n(held[b].data(), buckets_of(plan, where)[b], batches);
    saver.keep(batches, {newest});
  }
  CHECK(saver.fetch_kept_state(1).versions.empty());
  CHECK(saver.fetch_kept_state(4).versions.empty());
  for (const int batches : {2, 3}) {
    const auto kept = saver.fetch_kept_state(batches);
    CHECK(kept.where == where);
    CHECK(kept.state.size() == 2);
    REQUIRE(kept.versions.size() == 1);
    const auto* const values = kept.versions.front().data();
    const auto count = kept_copies(plan, where).versions.values;
    CHECK(count
          == values_of(
            pieces_of(plan, where, shared_out::parameters, savers::every_holder)));
    CHECK(std::count(values, values + count, static_cast<float>(batches)) == count);
  }
}

TEST_CASE("steps are not kept where nobody else has the same", "[nodes]") {
  CHECK_THAT(validation_error(plan_of({{.data = 1}, one_f_one_b()})),
             ContainsSubstring("data=2"));
  CHECK_THAT(
    validation_error(plan_of({{.data = 2, .exchange = "zero1"}, one_f_one_b()})),
    ContainsSubstring("zero1"));
  CHECK_THAT(validation_error(
               plan_of({{.data = 2, .expert = 2, .experts = true}, one_f_one_b()})),
             ContainsSubstring("data=4"));
  const auto plan = plan_of({{.data = 2}, one_f_one_b()});
  CHECK(redundancy_error(plan, {1, 1, 2, 2}).empty());
  CHECK_THAT(redundancy_error(plan, {1, 2, 1, 2}),
             ContainsSubstring("node 1 has all data replicas of rank 0"));
  const auto experts =
    plan_of({{.data = 4, .expert = 2, .experts = true}, one_f_one_b()});
  CHECK(redundancy_error(experts, {1, 1, 1, 1, 2, 2, 2, 2}).empty());
  CHECK_FALSE(redundancy_error(experts, {1, 1, 2, 2, 1, 1, 2, 2}).empty());
}

} // namespace troupe::kept_steps_test
