// SPDX-License-Identifier: BSD-3-Clause
// The memory that a plan needs, beside published formulas.

#include "plan/exchange_sizes.hpp"
#include "plan/memory_check.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_pools.hpp"
#include "plan/validity.hpp"
#include "tests/plan/tiny_plans.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace troupe::memory_needs_test {

namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

/// Parameters of GPT-2 with an untied head without bias: Radford et al., "Language
/// Models are Unsupervised Multitask Learners" (2019).
std::int64_t parameters_of_gpt(std::int64_t layers, std::int64_t width,
                               std::int64_t length, std::int64_t words) {
  const auto block = 2 * 2 * width                   // two layer norms
                     + 3 * width * width + 3 * width // queries, keys and values
                     + width * width + width         // projection
                     + 4 * width * width + 4 * width // feed-forward, out
                     + 4 * width * width + width;    // and in
  return (words + length) * width + layers * block + 2 * width + words * width;
}

/// A training whose weights no test reads, so that sizes may be large.
run_plan training_of_gpt(const shape& dims, const model_options& model,
                         std::int64_t batch) {
  auto whole = *make_network<float>(model);
  auto first_layers = *cut(whole, dims.stages, {});
  return {.sch = one_f_one_b(),
          .dims = dims,
          .work = training{.whole = std::move(whole),
                           .first_layers = std::move(first_layers),
                           .data = *open_data("synthetic", model, 5),
                           .batch = batch,
                           .optimizer = {.name = "adamw", .rate = 0.01},
                           .weights = {}},
          .machine = {.clock = clock_kind::real}};
}

/// 64 data replicas under a stage of ZeRO, one on each GPU.
run_plan under_zero(int stage, const model_options& model) {
  constexpr int replicas = 64;
  auto plan = training_of_gpt({1, 1, 1}, model, replicas);
  plan.mesh[axis::data] = replicas;
  plan.exchange = find_exchange(stage == 0 ? "ring" : "zero" + std::to_string(stage));
  for (int gpu = 0; gpu < replicas; ++gpu)
    plan.machine.processors.push_back({gpu});
  return plan;
}

/// 64 equal GPUs, and a host with memory for every copy.
machine_memory gpus_of(std::int64_t bytes) {
  machine_memory result{{std::int64_t{1} << 50, "the machine"}};
  for (int gpu = 0; gpu < 64; ++gpu)
    result.gpus[gpu] = {bytes, "a GPU"};
  return result;
}

} // namespace

// Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models" (2020), figure 1, in fp32: N data replicas hold P parameters, P gradients and
// 2P moments of Adam; stage 1 divides the moments by N, stage 2 also the gradients, and
// stage 3 also the parameters.
TEST_CASE("messages of gradients in bf16 need half the buffers", "[memory]") {
  auto plan = tiny::simulation(one_f_one_b(), {2, 8});
  plan.mesh[axis::data] = 4;
  plan.work.simulated().gradient = 4.0 * (1 << 20);
  for (const auto* const exchange :
       {"naive", "tree", "ring", "halving", "server", "zero1"}) {
    INFO(exchange);
    plan.exchange = find_exchange(exchange);
    const auto whole = exchanged_values(plan, {}, exchange_step::sum);
    plan.exchange->compression = find_codec("bf16");
    CHECK(whole > 0);
    CHECK(2 * exchanged_values(plan, {}, exchange_step::sum) == whole);
    if (plan.exchange->gather)
      CHECK(exchanged_values(plan, {}, exchange_step::gather) >= (1 << 20) / 4);
  }
}

TEST_CASE("64 replicas hold the shares of ZeRO to the byte", "[memory_needs]") {
  constexpr std::int64_t replicas = 64;
  // Each share of each parameter is a whole number of cache lines.
  constexpr std::int64_t width = 1024, layers = 4, length = 1024, words = 2048;
  const auto stage = GENERATE(0, 1, 2, 3);
  const auto plan = under_zero(stage, {"gpt", layers, width, 16, length, words});
  const auto whole = parameters_of_gpt(layers, width, length, words);
  for (const int d : {0, 1, 31, 63}) {
    const auto pools = pools_of(plan, {d, 0, 0});
    CHECK(sum_of(pools.buckets) == (stage >= 3 ? whole / replicas : whole));
    CHECK(sum_of(pools.gradients) == (stage >= 2 ? whole / replicas : whole));
    CHECK(pools.optimizer == 2 * (stage >= 1 ? whole / replicas : whole));
    CHECK(pools.versions == 1);
  }
}

// The same figure's example of 7.5 billion parameters on 64 GPUs: 120 GB without ZeRO,
// and 1.9 GB with stage 3. Both numbers are 16 bytes a parameter, in fp32 as in mixed
// precision.
TEST_CASE("7.5 billion parameters fit into 64 GPUs of 16 GB with ZeRO 3 alone",
          "[memory_needs]") {
  constexpr std::int64_t width = 4096, layers = 36, length = 256, words = 25'600;
  const auto whole = parameters_of_gpt(layers, width, length, words);
  REQUIRE(static_cast<double>(whole) / 7.5e9 > 0.99);
  REQUIRE(static_cast<double>(whole) / 7.5e9 < 1.01);
  const auto stage = GENERATE(0, 1, 2, 3);
  const auto plan = under_zero(stage, {"gpt", layers, width, 32, length, words});
  const auto broken = broken_rules(plan, {.memory = gpus_of(std::int64_t{16} << 30)});
  if (stage == 3) {
    INFO((broken.empty() ? "" : broken.front().sentence));
    CHECK(broken.empty());
    return;
  }
  REQUIRE(broken.size() == 1);
  CHECK(broken.front().name == "memory_of_training");
  CHECK(broken.front().sentence.find("of cuda:0's memory (1 rank), and only 16384 MiB "
                                     "are free")
        != std::string::npos);
  CHECK(broken_rules(plan, {.memory = gpus_of(std::int64_t{256} << 30)}).empty());
}

TEST_CASE("a run with a GPU that the machine lacks does not fit", "[memory_needs]") {
  const auto plan = under_zero(3, {"gpt", 1, 64, 2, 8, 64});
  auto memory = gpus_of(std::int64_t{16} << 30);
  CHECK(broken_rules(plan, {.memory = memory}).empty());
  memory.gpus.erase(63);
  const auto broken = broken_rules(plan, {.memory = memory});
  REQUIRE(broken.size() == 1);
  CHECK(broken.front().sentence.find("of cuda:63's memory (1 rank), and only 0 MiB are "
                                     "free")
        != std::string::npos);
  memory.gpus[63] = {std::int64_t{16} << 30, "another GPU"};
  CHECK(broken_rules(plan, {.memory = memory}).front().name == "gpus_of_one_kind");
  auto on_others = plan;
  on_others.machine.processors.pop_back(); // rank 63 is on cuda:0
  CHECK(broken_rules(on_others, {.memory = memory}).empty());
}

// Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models"
// (2022), table 2, in bytes for a layer, with sequences of s tokens, b samples, width
// h, a heads and t tensor shards: sbh(10 + 24/t), with sequence parallelism 34 sbh/t,
// and 2 sbh where forwards run again. Without dropout, whose two masks are sbh each, 10
// is 8 and 34 is 32. Attention stores a logarithm for each row and head, and no 5as/h.
// The paper neglects means and deviations of norms: two numbers of 4 bytes for each row
// and norm.
TEST_CASE("stages of 64 GPUs stash what Korthikanti et al. count, to the byte",
          "[memory_needs]") {
  constexpr std::int64_t s = 64, b = 2, h = 128, a = 16, blocks = 16;
  constexpr int stages = 8, shards = 8;
  const bool by_sequence = GENERATE(false, true), again = GENERATE(false, true);
  model_options model{"gpt", blocks, h, a, s, 64};
  model.stored = precision::bf16;
  auto plan = training_of_gpt({stages, stages, 1}, model, b * stages);
  plan.mesh[axis::tensor] = shards;
  plan.sequence_parallel = by_sequence;
  plan.work->shards = *make_shards<float>(model, shards, by_sequence);
  if (again) {
    plan.sch.recomputes = recomputation::late;
    plan.recomputed_units = 1;
  }
  const auto& first = plan.work->first_layers;
  const auto t = std::int64_t{shards}, rows = s * b;
  const auto input = 2 * rows * h / (by_sequence ? t : 1);
  const auto layer = (by_sequence ? rows * h * 32 / t : rows * h * (8 + 24 / t))
                     + 2 * 2 * 4 * rows / (by_sequence ? t : 1) // norms
                     + 4 * rows * a / t;                        // attention
  for (const int stage : {2, 3, 4}) { // stages of blocks alone
    const auto number = static_cast<std::size_t>(stage);
    const auto of_stage = (first[number + 1] - first[number]) / 2; // two halves each
    REQUIRE(of_stage >= 1);
    const auto pools = pools_of(plan, {0, 0, stage, 0});
    INFO("stage " << stage << ", " << of_stage << " blocks");
    // 1F1B: S - s microbatches in flight. The first input is a message's buffer.
    if (again) {
      CHECK(pools.inputs_slots == stages - stage);
      CHECK(4 * pools.inputs == (of_stage - 1) * input);
      CHECK(pools.stashes == 1);
      CHECK(4 * pools.stash == layer - input);
    } else {
      CHECK(pools.stashes == stages - stage);
      CHECK(4 * pools.stash == of_stage * layer - input);
    }
    CHECK(4 * pools.boundary == input);
  }
}

TEST_CASE("actors of both directions and of all buckets count", "[memory_needs]") {
  const auto bytes = [](const schedule& sch, int data, int buckets,
                        const std::string& exchange = "ring") {
    auto plan = tiny::simulation(sch, {4, 8});
    plan.mesh[axis::data] = data;
    plan.exchange = find_exchange(exchange);
    plan.work.simulated().buckets = buckets;
    return bytes_of_actors(plan);
  };
  CHECK(bytes(gpipe(), 1, 9) == bytes(gpipe(), 1, 1)); // no bucket is exchanged
  CHECK(bytes(gpipe(), 2, 9) - bytes(gpipe(), 2, 1) == 2 * 4 * 8 * 500);
  CHECK(bytes(chimera(), 1, 9) - bytes(chimera(), 1, 1) == 2 * 4 * 8 * 500);
  CHECK(bytes(chimera(), 1, 1) >= 2 * 4 * 20'000);
  CHECK(bytes(gpipe(), 3, 1, "server:async") - bytes(gpipe(), 3, 1) == 3 * 4 * 3 * 200);
  const auto of_training = [](const tiny::mesh_of_ranks& mesh, const schedule& sch) {
    const auto plan = tiny::training_on(mesh, sch, {2, 4, 1}, clock_kind::real);
    auto alone = tiny::simulation(sch, {2, 4, 1});
    alone.mesh = plan.mesh;
    alone.exchange = plan.exchange;
    alone.work.simulated().buckets = 0;
    std::int64_t buckets = 0;
    for (int d = 0; d < mesh.data; ++d)
      for (int t = 0; t < mesh.tensor; ++t)
        for (int stage = 0; stage < 2; ++stage)
          buckets += std::ssize(buckets_of(plan, {d, 0, stage, t}));
    return std::pair{bytes_of_actors(plan) - bytes_of_actors(alone), buckets};
  };
  for (const auto& mesh :
       std::vector<tiny::mesh_of_ranks>{{.data = 2},
                                        {.data = 2, .tensor = 2},
                                        {.data = 4, .expert = 2, .experts = true}}) {
    INFO(mesh.text());
    const auto [more, buckets] = of_training(mesh, gpipe());
    CHECK(more == buckets * 6'000);
  }
  const auto [of_layers, layers] = of_training({}, gpipe());
  CHECK(of_layers == layers * 2'000);
  const auto [of_directions, count] = of_training({}, chimera());
  CHECK(of_directions == 2 * count * 6'000);
}

// Growth of resident memory on x86-64 with g++ 12, less the program's 5 MB and tensors.
TEST_CASE("the count of actors covers the bytes that were measured", "[memory_needs]") {
  struct measurement {
    schedule sch;
    int stages, data, buckets;
    std::int64_t bytes;
  };
  for (const auto& [sch, stages, data, buckets, bytes] :
       std::vector<measurement>{{gpipe(), 1000, 1, 1, 11'900'000},
                                {chimera(), 1000, 1, 1, 19'600'000},
                                {gpipe(), 500, 2, 100, 19'400'000},
                                {chimera(), 200, 4, 100, 23'400'000}}) {
    auto plan = tiny::simulation(sch, {stages, 2});
    plan.mesh[axis::data] = data;
    plan.exchange = find_exchange("ring");
    plan.work.simulated().buckets = buckets;
    INFO(sch.name << ", " << stages << " stages");
    CHECK(bytes_of_actors(plan) >= bytes);
  }
  for (const auto& [sch, stages, data, layers, bytes] :
       std::vector<measurement>{{gpipe(), 1, 1, 4000, 5'800'000},
                                {gpipe(), 1, 2, 4000, 20'000'000},
                                {gpipe(), 10, 8, 1000, 32'600'000},
                                {chimera(), 10, 1, 1000, 4'200'000}}) {
    auto plan = tiny::training_of(sch, {stages, 2}, clock_kind::virtual_time,
                                  {"mlp", layers, 1, 1, 1, 2});
    plan.mesh[axis::data] = data;
    plan.exchange = find_exchange("ring");
    INFO(sch.name << ", " << layers << " layers");
    CHECK(bytes_of_actors(plan) >= bytes);
  }
}

} // namespace troupe::memory_needs_test
