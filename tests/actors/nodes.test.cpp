// SPDX-License-Identifier: BSD-3-Clause
// Runs over several nodes: the bits are those of one process.

#include "tests/actors/nodes.hpp"

#include "actors/checkpoints/gathered_state.hpp"
#include "actors/proof/proof.hpp"
#include "tests/actors/brittle_layer.hpp"
#include "tests/actors/slow_relay.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>

namespace troupe::nodes_test {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

run_result alone(const run_plan& plan) {
  auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  return result;
}

run_result on_nodes(const run_plan& plan, int nodes) {
  nodes_here there{plan, nodes};
  auto result = there.perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  return result;
}

struct placed {
  tiny::mesh_of_ranks mesh;
  int stages;
  int nodes;
  const char* compress = "none";
};

} // namespace

TEST_CASE("nodes train the bits of one process, whatever they share out", "[nodes]") {
  const auto how = GENERATE(
    placed{{}, 4, 3}, placed{{.tensor = 2}, 2, 4},
    placed{{.tensor = 2, .by_sequence = true}, 1, 2}, placed{{.data = 2}, 2, 4},
    placed{{.data = 4, .exchange = "tree"}, 1, 3},
    placed{{.data = 2, .exchange = "zero1", .clips = true}, 2, 4},
    placed{{.data = 2, .exchange = "zero2"}, 2, 2},
    placed{{.data = 2, .exchange = "zero3"}, 2, 4}, placed{{.data = 2}, 2, 4, "bf16"},
    placed{{.data = 4, .exchange = "tree"}, 1, 3, "bf16"},
    placed{{.data = 3, .exchange = "zero3"}, 1, 3, "bf16"},
    placed{{.data = 2, .expert = 2, .experts = true}, 2, 4},
    placed{{.data = 2, .expert = 2, .exchange = "zero1", .experts = true}, 1, 2});
  auto plan =
    tiny::training_on(how.mesh, one_f_one_b(), {how.stages, 4, 2}, clock_kind::real);
  if (plan.exchange)
    plan.exchange->compression = find_codec(how.compress);
  INFO(how.mesh.text() << " stages " << how.stages << " nodes " << how.nodes
                       << " compress " << how.compress);
  const auto here = alone(plan), there = on_nodes(plan, how.nodes);
  CHECK(there.loss == here.loss);
  CHECK(there.parameters == here.parameters);
  CHECK(there.gradients == here.gradients);
  CHECK(there.bytes_moved == here.bytes_moved);
  CHECK(there.samples == here.samples);
  CHECK(std::ranges::all_of(there.peak_bytes, [](auto bytes) { return bytes > 0; }));
}

TEST_CASE("every schedule that nodes play is proved by its record", "[nodes]") {
  const auto sch =
    GENERATE(gpipe(), one_f_one_b(), chimera(), pipedream(1), two_bw(), ampnet(6, 2));
  auto plan = tiny::training_of(sch, {4, 4, 2}, clock_kind::real);
  keep_for_proofs(plan);
  INFO(sch.name);
  const auto result = on_nodes(plan, 2);
  CHECK(result.processes == 3); // the leader hosts no rank
  for (const auto& one : prove(plan, result)) {
    CHECK(one.name != "memory");
    INFO(one.name << ": " << one.detail);
    CHECK_FALSE(one.fails());
  }
}

TEST_CASE("a tied matrix stays one over nodes", "[nodes]") {
  auto model = tiny::gpt();
  model.tied = true;
  const auto plan =
    tiny::training_of(one_f_one_b(), {3, 4, 2}, clock_kind::real, model);
  CHECK(on_nodes(plan, 3).parameters == alone(plan).parameters);
}

TEST_CASE("evaluations and checkpoints come from all nodes, and a run goes on there",
          "[nodes]") {
  const auto* const exchange = GENERATE("ring", "zero1", "zero3");
  auto plan = tiny::training_on({.data = 2, .exchange = exchange}, pipedream(2),
                                {2, 4, 4}, clock_kind::real);
  plan.work->optimizer.name = "adamw";
  plan.work->optimizer.momentum = 0;
  const auto whole = alone(plan);
  plan.copies.checkpoint_every = plan.copies.evaluate_every = 2;
  std::vector<training_state> saved;
  std::vector<int> evaluated;
  nodes_here there{plan, 2};
  const auto result = there.perform(
    plan, {.evaluate = [&](int batches, const auto&) { evaluated.push_back(batches); },
           .save =
             [&](const training_copies& one) {
               saved.push_back(whole_of(plan, one, savers::first_holder).value());
             }});
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  CHECK(result.parameters == whole.parameters);
  CHECK(evaluated == std::vector{2, 4});
  REQUIRE(saved.size() == 2);
  CHECK(saved.front().state.size() == 2);

  auto rest = plan;
  rest.copies.checkpoint_every = rest.copies.evaluate_every = 0;
  nodes_here others{rest, 4};
  rest.dims.steps -= saved.front().batches;
  resume_from(std::make_shared<const training_state>(saved.front()), rest);
  const auto end = others.perform(rest);
  INFO(end.failure);
  REQUIRE(end.outcome == ending::finished);
  CHECK(end.parameters == whole.parameters);
}

#ifndef TROUPE_SANITIZED

TEST_CASE("links that take 200 ms more change no bit, and nobody is lost", "[nodes]") {
  auto plan = tiny::training_on({.data = 2, .exchange = "ring"}, one_f_one_b(),
                                {2, 2, 2}, clock_kind::real);
  plan.copies.checkpoint_every = 1;
  nodes_here there{plan, 2};
  auto& cluster = there.reached_by();
  cluster.failure_timeout = 1000ms;
  const auto relays = relays_before(cluster.nodes, 200ms);
  const auto before = std::chrono::steady_clock::now();
  std::vector<int> saved;
  const auto result = there.perform(
    plan, {.save = [&](const training_copies& one) {
      saved.push_back(whole_of(plan, one, savers::first_holder).value().batches);
    }});
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  CHECK(saved == std::vector{1, 2});
  plan.copies.checkpoint_every = 0;
  CHECK(result.parameters == alone(plan).parameters);
  CHECK(std::chrono::steady_clock::now() - before > 2s); // links did take longer
}

#endif

TEST_CASE("an actor that fails on a node ends the run with its reason", "[nodes]") {
  auto plan = tiny::training_of(one_f_one_b(), {2, 2, 2}, clock_kind::real);
  plan.work->optimizer.rate = 1e30;
  nodes_here there{plan, 2};
  const auto result = there.perform(plan);
  CHECK(result.outcome == ending::failed);
  CHECK_THAT(result.failure, ContainsSubstring("not finite"));
  plan.work->optimizer.rate = 0.01; // the nodes are as before
}

TEST_CASE("a node that cannot be reached, or has another version, is named",
          "[nodes]") {
  const auto plan = tiny::training_of(one_f_one_b(), {2, 2, 1}, clock_kind::real);
  nodes_here there{plan, 2};
  auto& cluster = there.reached_by();
  SECTION("nobody listens") {
    cluster.nodes[1].port = 1;
    CHECK_THROWS_WITH(there.perform(plan), ContainsSubstring("127.0.0.1:1"));
  }
  SECTION("another version") {
    cluster.version = "another";
    CHECK_THROWS_WITH(there.perform(plan),
                      ContainsSubstring("install one version on all machines"));
  }
  SECTION("then it plays") {
    CHECK(there.perform(plan).outcome == ending::finished);
  }
}

TEST_CASE("nodes that read other data than each other play no run", "[nodes]") {
  const auto plan = tiny::training_of(one_f_one_b(), {2, 2, 1}, clock_kind::real);
  const int odd_node = GENERATE(1, 2);
  nodes_here there{[&](const mail::prepare& facts) {
                     auto part = plan;
                     if (facts.node == odd_node)
                       part.work->data = *open_data("synthetic", tiny::gpt(), 6);
                     return part;
                   },
                   2};
  CHECK_THROWS_AS(there.perform(plan), nodes_differ);
  CHECK_THROWS_WITH(
    there.perform(plan),
    ContainsSubstring("must have the same data")
      && ContainsSubstring(
        "node "
        + to_string(there.reached_by().nodes[static_cast<std::size_t>(odd_node) - 1])));
}

TEST_CASE("a node refuses a plan, and another version, for good", "[nodes]") {
  const auto plan = tiny::training_of(one_f_one_b(), {2, 2, 1}, clock_kind::real);
  nodes_here there{[](const mail::prepare&) -> tl::expected<run_plan, std::string> {
                     return tl::unexpected{std::string{"there is no such file"}};
                   },
                   1};
  CHECK_THROWS_AS(there.perform(plan), lasting_refusal);
  there.reached_by().version = "another";
  CHECK_THROWS_AS(there.perform(plan), lasting_refusal);
}

TEST_CASE("each attempt of a run is held against those before it", "[nodes]") {
  const auto plan = tiny::training_of(one_f_one_b(), {2, 2, 1}, clock_kind::real);
  nodes_here there{plan, 1};
  common_facts attempts;
  there.reached_by().facts = &attempts;
  CHECK(there.perform(plan).outcome == ending::finished);
  CHECK(there.perform(plan).outcome == ending::finished);
  CHECK_THAT(attempts.add("another attempt", {{name_of_data, "other data"}}),
             ContainsSubstring("another attempt has other data"));
  common_facts others;
  CHECK(others.add("node a:1", {{name_of_data, "other data"}}).empty());
  there.reached_by().facts = &others;
  CHECK_THROWS_AS(there.perform(plan), nodes_differ);
}

TEST_CASE("one node is not two, whatever it is called", "[nodes]") {
  const auto plan = tiny::training_of(one_f_one_b(), {2, 2, 1}, clock_kind::real);
  nodes_here there{plan, 2};
  auto& nodes = there.reached_by().nodes;
  nodes[1] = {"127.1", nodes[0].port};
  CHECK_THROWS_WITH(there.perform(plan), ContainsSubstring("which are the same node"));
}

TEST_CASE("runs that call the same nodes differently are all played", "[nodes]") {
  const auto plan = tiny::training_of(one_f_one_b(), {2, 2, 2}, clock_kind::real);
  nodes_here there{plan, 2};
  std::vector<cluster> clusters(4, there.reached_by());
  for (std::size_t i = 0; i < clusters.size(); ++i)
    clusters[i].nodes[i % 2].host = "127.1"; // behind 127.0.0.1 in the alphabet
  std::vector<std::string> failures(clusters.size(), "none");
  std::vector<std::thread> leads;
  for (std::size_t i = 0; i < clusters.size(); ++i)
    leads.emplace_back([&, i] {
      try {
        leader others{clusters[i], std::make_shared<const run_plan>(plan), {}};
        failures[i] = perform(plan, {}, &others).failure;
      } catch (const std::exception& wrong) {
        failures[i] = wrong.what();
      }
    });
  for (auto& one : leads)
    one.join();
  for (const auto& failure : failures)
    CHECK(failure.empty());
}

TEST_CASE("runs wait for one another at a node, and all are played", "[nodes]") {
  const auto plan = tiny::training_of(one_f_one_b(), {2, 2, 2}, clock_kind::real);
  const auto whole = alone(plan);
  nodes_here there{plan, 2};
  std::vector<run_result> results(3);
  std::vector<std::thread> leads;
  for (auto& one : results)
    leads.emplace_back([&] { one = there.perform(plan); });
  for (auto& one : leads)
    one.join();
  for (const auto& one : results) {
    CHECK(one.outcome == ending::finished);
    CHECK(one.parameters == whole.parameters);
  }
}

} // namespace troupe::nodes_test
