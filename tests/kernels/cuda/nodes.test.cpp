// SPDX-License-Identifier: BSD-3-Clause
// Ranks of nodes on simulated GPUs: a message between nodes holds the values that
// kernels have written by then.

#include "tests/actors/nodes.hpp"

#include "actors/embedding/training_node.hpp"
#include "actors/proof/proof.hpp"
#include "experiments/options/options_text.hpp"
#include "experiments/session/node_part.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"
#include "plan/gpu_groups.hpp"
#include "tests/actors/embedded.hpp"
#include "tests/experiments/tiny_options.hpp"
#include "tests/random/wish.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace troupe::nodes_test {

namespace {

struct wanted {
  std::string schedule;
  typed_mesh mesh;
  std::string device = "cuda";
  std::string precision = "fp32";
  std::string model = "gpt";
};

options options_of(const wanted& what) {
  auto typed = tiny::options_of(what.schedule);
  typed.model.name = what.model;
  typed.mesh = what.mesh;
  typed.schedules.steps = 3;
  typed.nodes.nodes = "127.0.0.1:1,127.0.0.1:2";
  typed.run.device = what.device;
  typed.run.precision = what.precision;
  return parse(typed, true).value();
}

/// The plan as the leader has one; the leader's own GPUs do not matter.
run_plan plan_of(const options& o) {
  return set_up_part(o, std::vector<int>{}).value().runs.front().plan;
}

run_result on_two_nodes(const options& o, const run_plan& plan) {
  nodes_here there{
    [](const mail::prepare& facts) { return plan_of_part(facts, {.folder = "."}); }, 2};
  return there.perform(plan, {}, to_text(o));
}

} // namespace

namespace {

const std::string two = "cuda:0,cuda:1", four = "cuda:0,cuda:1,cuda:2,cuda:3";

const std::vector<wanted> all_wanted{
  {"2bw", {.stages = 2}, two, "tf32"}, // by channels
#ifndef TROUPE_SANITIZED               // many times slower
  {"pipedream", {.stages = 2}, "cuda", "bf16"},
  {"1f1b", {.axes = "data=2,pipe=1", .exchange = "zero3"}, two},
  {"1f1b", {.stages = 4}, four, "bf16"},
  {"gpipe", {.axes = "data=2,pipe=2", .exchange = "zero2"}, four},
  {"1f1b", {.axes = "data=2,pipe=2", .exchange = "tree"}, four},
  {"1f1b", {.axes = "data=2,pipe=2", .exchange = "tree"}}, // on the same two
  {"gpipe", {.axes = "data=2,pipe=1", .exchange = "server"}, two, "bf16"},
  {"1f1b", {.axes = "tensor=2,pipe=1", .sequence_parallel = true}, two},
  {"gpipe", {.axes = "data=2,pipe=1,expert=2"}, two, "fp32", "moe"},
#endif
};

} // namespace

namespace {

/// The GPU of each rank: both nodes are in this process, and use the same GPUs.
std::vector<std::string> gpus_of(const wanted& what, const run_plan& plan) {
  const int on_each = plan.ranks() / 2;
  std::vector<std::string> result;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    result.push_back("cuda:"
                     + std::to_string(what.device == "cuda" ? rank % on_each : rank));
  return result;
}

} // namespace

TEST_CASE("ranks on GPUs of nodes are proved right, whenever their streams run",
          "[streams]") {
  const auto& what = GENERATE(from_range(all_wanted));
  const auto o = options_of(what);
  auto plan = plan_of(o);
  keep_for_proofs(plan);
  for (std::uint64_t seed = 1; seed <= gpu::seeds(); ++seed) {
    INFO(what.schedule << ' ' << what.mesh.axes << ", seed " << seed);
    on_host::seed_streams(seed);
    const auto result = on_two_nodes(o, plan);
    INFO(result.failure);
    REQUIRE(result.outcome == ending::finished);
    CHECK(result.gpu_groups == std::ssize(groups_on_gpus(plan, gpus_of(what, plan))));
    for (const auto& one : prove(plan, result)) {
      INFO(one.name << ": " << one.detail);
      CHECK_FALSE(one.fails());
    }
  }
}

TEST_CASE("a job of a user's program is proved right on GPUs, here and on nodes",
          "[streams]") {
  auto job = embedded::small_job();
  const int count = GENERATE(0, 3); // nodes
  job.device = count > 0 ? "cuda" : "cuda:0";
  job.verify = true;
  job.held_out = 4;
  std::vector<std::unique_ptr<training_node>> nodes;
  for (int n = 0; n < count; ++n) {
    nodes.push_back(training_node::start(job, {.listen = "127.0.0.1:0"}).value());
    job.nodes.addresses.push_back(nodes.back()->address());
  }
  const auto result = embedded::finished(job);
  CHECK(result.parameters != embedded::finished(embedded::small_job()).parameters);
  CHECK(result.held_out_loss.has_value());
  CHECK(!result.proofs.empty());
  for (const auto& proof : result.proofs) {
    INFO(proof.name << ": " << proof.detail);
    CHECK(proof.holds);
  }
  auto mixed = job;
  mixed.device = "cuda:0,cpu";
  CHECK(embedded::refusal_of(mixed).find("say --device cpu or --device cuda")
        != std::string::npos);
}

TEST_CASE("a node's GPU hands on to another node's CPU", "[streams]") {
  const auto on_cpus = options_of({"1f1b", {.stages = 2}, "cpu"});
  const auto mixed = options_of({"1f1b", {.stages = 2}, "cuda:0,cpu"});
  auto plan = plan_of(on_cpus);
  plan.keep.weights = true;
  const auto cpus = perform(plan);
  plan.machine.processors = mixed.run.processors;
  const auto both = on_two_nodes(mixed, plan);
  INFO(both.failure);
  REQUIRE(both.outcome == ending::finished);
  REQUIRE(both.loss.size() == cpus.loss.size());
  for (std::size_t i = 0; i < cpus.loss.size(); ++i)
    CHECK(std::abs(cpus.loss[i] - both.loss[i]) < 1e-5 * cpus.loss[i]);
  CHECK(both.parameters != cpus.parameters); // a GPU was among them
  CHECK(both.gradient_norms.empty());        // that measures no norm
}

TEST_CASE("a node says which GPU it has not", "[streams]") {
  const auto o = options_of({"1f1b", {.stages = 2}, "cuda:0,cuda:5"});
  const auto plan = plan_of(o);
  try {
    on_two_nodes(o, plan);
    FAIL("was not refused");
  } catch (const std::exception& wrong) {
    CHECK(std::string{wrong.what()}.find(
            "rank 1 needs cuda:5, and the node offers cuda:0, cuda:1")
          != std::string::npos);
  }
}

TEST_CASE("GPUs of two kinds are refused, as their bits differ", "[streams]") {
  const auto o = options_of({"1f1b", {.stages = 2}, "cuda:0,cuda:4"});
  try {
    on_two_nodes(o, plan_of(o));
    FAIL("was not refused");
  } catch (const std::exception& wrong) {
    const std::string told = wrong.what();
    INFO(told);
    CHECK(
      told.starts_with("GPUs of a run must be of the same kind, and node 127.0.0.1:"));
    CHECK(told.find(" has stand-in, node 127.0.0.1:") != told.npos);
    CHECK(told.ends_with(" has other stand-in"));
  }
}

} // namespace troupe::nodes_test
