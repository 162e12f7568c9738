// Whole runs on a GPU that is none: kernels on fibres, launched on streams that run
// them at some later time, which a seed chooses. What is read too early is wrong.

#include "actors/pipeline/stage_tensors.hpp"
#include "actors/plan/gpu_groups.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"
#include "tests/actors/meshes.hpp"
#include "tests/actors/proved_run.hpp"
#include "tests/actors/split_schedules.hpp"
#include "tests/kernels/cuda/seeds.hpp"
#include "tests/tries.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

using namespace troupe;

namespace {

/// \param gpus that ranks are on in turns
void check(run_plan plan, std::string_view of, int gpus = 1) {
  plan.processors.clear();
  for (int gpu = 0; gpu < gpus; ++gpu)
    plan.processors.push_back({gpu});
  const auto groups = groups_on_gpus(plan, gpus_here(plan)).size();
  for (std::uint64_t seed = 1; seed <= gpu::seeds(); ++seed) {
    INFO(of << ", seed " << seed);
    on_host::seed_streams(seed);
    const auto done = tiny::run_of(plan);
    CHECK(done.refusals() == "");
    CHECK(done.result.gpu_groups == static_cast<int>(groups));
  }
}

#ifdef TROUPE_SANITIZED // many times slower: one of each kind
const std::vector<tiny::mesh_of_ranks> meshes{
  {.data = 2, .exchange = "zero3", .clips = true, .stored = precision::bf16},
  {.data = 2, .tensor = 2, .exchange = "zero1", .by_sequence = true},
  {.data = 2, .expert = 2, .experts = true, .noise = 0.5},
  {.data = 2, .exchange = "zero1", .tied = true, .clips = true},
};
#else
const std::vector<tiny::mesh_of_ranks> meshes{
  {.stored = precision::bf16},
  {.data = 2, .exchange = "ring"},
  {.data = 3, .exchange = "tree", .clips = true, .stored = precision::bf16},
  {.data = 2, .exchange = "server"},
  {.data = 2, .exchange = "server:async"},
  {.data = 2, .exchange = "zero1"},
  {.data = 2, .exchange = "zero2", .clips = true},
  {.data = 3, .exchange = "zero3", .stored = precision::bf16},
  {.tensor = 2, .clips = true},
  {.data = 2, .tensor = 2, .exchange = "zero3", .by_sequence = true},
  {.tied = true, .stored = precision::bf16},
  {.data = 2, .exchange = "zero1", .tied = true, .clips = true},
  {.data = 2, .tensor = 2, .tied = true, .clips = true},
  {.data = 2, .expert = 2, .experts = true},
  {.data = 2, .expert = 2, .exchange = "zero1", .experts = true, .noise = 0.5},
};
#endif

} // namespace

TEST_CASE("every schedule is proved right on streams, whenever they run", "[streams]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto& entry = GENERATE(from_range(tiny::one_of_each_kind({4, 8})));
  const int gpus = GENERATE(1, 3); // by edges, where stages are on GPUs of their own
  const auto sch = *find_schedule(entry.name);
  const bool by_edges = gpus > 1 && clock == clock_kind::real;
  const auto of = clock == clock_kind::real ? std::string{entry.name} : "virtual time";
  if (by_edges || (gpus == 1 && tests::tries(4, {of})))
    check(tiny::training_of(sch, {4, 8, 2}, clock, {"mlp", 5, 12}), entry.name, gpus);
#ifndef TROUPE_SANITIZED
  if (by_edges || (gpus == 1 && gpu::all_runs()))
    check(tiny::training_of(sch, {2, 4, 2}, clock, tiny::gpt(4)), entry.name, gpus);
#endif
}

TEST_CASE("ranks of every kind are proved right on streams", "[streams]") {
  const auto& mesh = GENERATE(from_range(meshes));
  const int gpus = GENERATE(1, 4); // of one each exchange what others have by itself
  const bool exchanges = mesh.data * mesh.tensor > 1;
  if (gpus == (exchanges ? 4 : 1) || gpu::all_runs())
    check(tiny::training_on(mesh, one_f_one_b(), {2, 2, 2}, clock_kind::real),
          mesh.text(), gpus);
}

TEST_CASE("GPUs of a node exchange what has more than one bucket in one order",
          "[streams]") {
  // Two directions complete a bucket when both have it, in whatever order.
  check(tiny::training_on({.data = 2, .exchange = "ring"}, chimera(), {2, 4, 3},
                          clock_kind::real),
        "chimera", 4);
}

TEST_CASE("where GPUs cannot exchange this machine sums, and says why", "[streams]") {
  auto plan = tiny::training_on({.data = 2, .exchange = "ring"}, one_f_one_b(),
                                {2, 2, 2}, clock_kind::real);
  plan.processors = {{0}, {1}, {2}, {3}};
  const auto themselves = tiny::run_of(plan);
  CHECK(themselves.result.gpu_groups == 2 + 4); // and edges, two each replica
  CHECK(themselves.result.ungrouped.empty());
  setenv("TROUPE_NCCL", "off", 1);
  const auto by_messages = tiny::run_of(plan);
  unsetenv("TROUPE_NCCL");
  CHECK(by_messages.refusals() == "");
  CHECK(by_messages.result.gpu_groups == 0);
  CHECK(by_messages.result.ungrouped == "TROUPE_NCCL says off");
  CHECK(by_messages.result.parameters == themselves.result.parameters);
  CHECK(by_messages.result.bytes_moved == themselves.result.bytes_moved);
}

TEST_CASE("GPUs of two kinds in one machine are refused", "[streams]") {
  auto plan = tiny::training_of(one_f_one_b(), {2, 4, 3}, clock_kind::real);
  plan.processors = {{3}, {4}};
  CHECK(refusal(plan)
        == "the GPUs of a run must be of one kind, as others make other bits, and "
           "cuda:3 is stand-in, cuda:4 other stand-in");
  CHECK(refusal(plan, {}, std::vector<int>{0}).empty());
}

TEST_CASE("actions that come again are launched as graphs", "[streams]") {
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
  const auto before = on_host::graphs_launched();
  auto plan = tiny::training_of(one_f_one_b(), {2, 8, 3}, clock_kind::real);
  plan.processors = {processor{0}};
  setenv("TROUPE_MARKS", "off", 1); // else it is chance which buffers are free
  CHECK(tiny::run_of(plan).refusals() == "");
  unsetenv("TROUPE_MARKS");
  CHECK(on_host::graphs_launched() - before
        > 40); // of 48 forwards and backwards each, and updates
#else
  SKIP("this compiler leaves padding in keys: graphs are chance (launch_list.hpp)");
#endif
}

namespace {

/// Marks of other streams that streams pass in a run.
std::int64_t passed_by(run_plan plan, std::vector<processor> on) {
  plan.processors = std::move(on);
  const auto before = on_host::marks_passed();
  const auto done = tiny::run_of(plan);
  if (!plan.mixes_processors())
    CHECK(done.refusals() == "");
  return on_host::marks_passed() - before;
}

/// 32 messages: of 4 microbatches, over 2 boundaries, in 2 batches, both ways.
run_plan with_32_messages(const schedule& sch, clock_kind clock) {
  return tiny::training_of(sch, {3, 4, 2}, clock, {"mlp", 5, 12});
}

constexpr processor a{0}, b{1}, cpu{};

} // namespace

TEST_CASE("messages between GPUs leave before they are made", "[streams]") {
  const auto of = with_32_messages;
  setenv("TROUPE_NCCL", "off", 1); // they stay where they are
  CHECK(passed_by(of(one_f_one_b(), clock_kind::real), {a}) == 32);
  CHECK(passed_by(of(one_f_one_b(), clock_kind::real), {a, b}) == 32);
  CHECK(passed_by(of(find_schedule("pipedream").value(), clock_kind::real), {a, b})
        == 32);
  CHECK(passed_by(of(find_schedule("zb-h1").value(), clock_kind::real), {b, a, a})
        == 32);
  CHECK(passed_by(of(one_f_one_b(), clock_kind::real), {a, b, cpu}) == 16);
  CHECK(passed_by(of(one_f_one_b(), clock_kind::real), {a, cpu}) == 0);
  CHECK(passed_by(of(one_f_one_b(), clock_kind::virtual_time), {a}) == 0);
  CHECK(passed_by(of(find_schedule("ampnet").value(), clock_kind::real), {a})
        == 0); // chooses by what has come
  CHECK(
    passed_by(
      tiny::training_on({.tensor = 2}, one_f_one_b(), {2, 2, 2}, clock_kind::real), {a})
    == 0); // shards meet
  setenv("TROUPE_MARKS", "off", 1);
  CHECK(passed_by(of(one_f_one_b(), clock_kind::real), {a, b}) == 0);
  unsetenv("TROUPE_MARKS");
  unsetenv("TROUPE_NCCL");
}

TEST_CASE("stages on GPUs of their own have room for what they give each other",
          "[streams]") {
  auto plan = with_32_messages(one_f_one_b(), clock_kind::real);
  plan.processors = {a, b};
  const auto needed = bytes_needed(plan);
  CHECK(perform(plan).reserved_bytes == needed);
  plan.processors = {a};
  CHECK(needed > bytes_needed(plan));
}

TEST_CASE("GPUs give each other what has been launched", "[streams]") {
  // The giver's stream waits for the pass that makes a tensor, and the taker's pass for
  // what takes it; now and then a buffer is needed again before it has been given.
  const auto of = with_32_messages;
  const auto with = [](std::int64_t marks, std::int64_t messages) {
    return marks >= 2 * messages && marks <= 4 * messages;
  };
  for (const char* name : {"1f1b", "pipedream", "zb-h1"})
    CHECK(
      with(passed_by(of(find_schedule(name).value(), clock_kind::real), {a, b}), 32));
  CHECK(with(passed_by(of(one_f_one_b(), clock_kind::real), {a, b, cpu}), 16));
}

TEST_CASE("a run whose GPUs cannot give each other tensors ends, and says which",
          "[streams]") {
  const int number = GENERATE(0, 1, 7, 20, 31, 62);
  const bool marks = GENERATE(true, false);
  INFO("exchange " << number << ", marks " << marks);
  auto plan = with_32_messages(one_f_one_b(), clock_kind::real);
  plan.processors = {a, b};
  plan.stall_timeout = std::chrono::seconds{20}; // it is not that
  const auto edges = static_cast<int>(groups_on_gpus(plan, gpus_here(plan)).size());
  REQUIRE(edges == 4);
  if (!marks)
    setenv("TROUPE_MARKS", "off", 1);
  on_host::break_exchange(number + 2 * edges); // which are tried out
  const auto result = perform(plan);
  unsetenv("TROUPE_MARKS");
  CHECK(result.how == ending::failed);
  INFO(result.failure);
  CHECK(result.failure.find(" has lost its GPU") != std::string::npos);
}

TEST_CASE("the record has no action before what it reads, nor two of a rank at once",
          "[streams]") {
  const std::string name = GENERATE("1f1b", "gpipe", "zb-h1", "chimera", "2bw");
  auto plan = tiny::training_of(find_schedule(name).value(), {4, 8, 3},
                                clock_kind::real, {"mlp", 5, 12});
  plan.processors = {{0}, {1}};
  keep_for_proofs(plan);
  for (std::uint64_t seed = 1; seed <= 5 * gpu::seeds(); ++seed) {
    INFO(name << ", seed " << seed);
    on_host::seed_streams(seed);
    const auto result = perform(plan);
    REQUIRE(result.how == ending::finished);
    std::map<std::tuple<bool, int, int, int>, measured_action> makers;
    for (const auto& row : result.actions)
      for (const auto& s : row)
        if (s.what.what == op::forward || goes_back(s.what.what))
          makers[{s.what.what == op::forward, s.what.direction, s.what.stage,
                  s.what.microbatch}] = s;
    for (const auto& row : result.actions) {
      nanoseconds last = 0;
      for (const auto& s : row) {
        CHECK(s.start <= s.end);
        CHECK(last <= s.start);
        last = s.end;
      }
    }
    for (const auto& [who, s] : makers) {
      const auto& [up, direction, stage, microbatch] = who;
      const auto maker =
        makers.find({up, direction, up ? stage - 1 : stage + 1, microbatch});
      if (maker != makers.end())
        CHECK(maker->second.end <= s.start);
    }
  }
}

TEST_CASE("there is room for gradients that leave before their makers hear of the end",
          "[streams]") {
  auto plan = tiny::training_of(gpipe(), {2, 2, 2}, clock_kind::real, {"mlp", 5, 12});
  plan.processors = {processor{0}};
  rank_memory memory;
  pool samples{"samples", 8, 64, memory.of(memory_use::activations)};
  stream on;
  const boundary between{boundary_pool(plan, {0, 0, 0}, memory), true};
  stage_tensors below{plan, {0, 0, 0}, memory, on, {}, between},
    above{plan, {0, 0, 1}, memory, on, between, {}};
  const auto launch = [&](stage_tensors& stage, op what, int microbatch) {
    const int number = &stage == &below ? 0 : 1;
    stage.pieces({.what = {what, 0, number, microbatch},
                  .samples = plan.batches().range_of(microbatch),
                  .version = 0,
                  .begins_sum = true,
                  .ends_sum = false,
                  .by_layer = false,
                  .length = plan.length_of(0, microbatch)});
    return stage.take_message(what, microbatch);
  };
  for (const int m : {0, 1}) {
    below.put_input(m, samples.acquire());
    above.put_input(m, launch(below, op::forward, m));
    below.end_forward(m);
    above.put_labels(m, samples.acquire());
    launch(above, op::forward, m);
    above.end_forward(m);
  }
  for (const int m : {0, 1}) // nobody has told the upper stage that they have ended
    below.put_gradient(m, launch(above, op::backward, m));
  for (const int m : {0, 1})
    launch(below, op::backward, m);
  for (const int m : {0, 1})
    below.end_backward(op::backward, m);
  std::vector<buffer> under_way;
  for (const int m : {2, 3}) {
    below.put_input(m, samples.acquire());
    CHECK_NOTHROW(under_way.push_back(launch(below, op::forward, m)));
  }
}

TEST_CASE("a run whose GPUs cannot exchange ends, and says which", "[streams]") {
  const int number = GENERATE(0, 5);
  auto plan = tiny::training_on({.data = 2, .tensor = 2, .exchange = "zero1"},
                                one_f_one_b(), {2, 2, 2}, clock_kind::real);
  plan.processors = {{0}, {1}, {2}, {3}};
  plan.stall_timeout = std::chrono::seconds{20}; // it is not that
  const auto groups = groups_on_gpus(plan, gpus_here(plan)).size();
  on_host::break_exchange(number + 2 * static_cast<int>(groups)); // which are tried out
  const auto result = perform(plan);
  CHECK(result.how == ending::failed);
  INFO(result.failure);
  CHECK(result.failure.find(" has lost its GPU") != std::string::npos);
  on_host::break_exchange(0);
  CHECK_THROWS(perform(plan)); // before it begins
}

TEST_CASE("replicas that write one memory are proved right on streams", "[streams]") {
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const auto& sch = GENERATE(from_range(std::vector{chimera(), pipedream()}));
  if (!tests::tries(4, {sch.name}))
    return;
  check(tiny::training_on({.data = 2, .exchange = "hogwild", .stored = stored}, sch,
                          {2, 4, 3}, clock_kind::virtual_time),
        sch.name);
}

TEST_CASE("images are proved right on streams", "[streams]") {
  check(tiny::training_of(gpipe(), {2, 2, 2}, clock_kind::real, {"lenet", 5, 12}),
        "lenet");
}

TEST_CASE("weights that are kept are proved right on streams", "[streams]") {
  auto plan = tiny::training_on({.stored = precision::bf16}, pipedream(), {2, 4, 3},
                                clock_kind::real);
  check(plan, "pipedream in bf16");
}

#ifndef TROUPE_SANITIZED // minutes; products.test.cpp has their kernels
TEST_CASE("products in tf32 are proved right on streams", "[streams]") {
  auto plan = tiny::training_of(one_f_one_b(), {2, 4, 3}, clock_kind::real);
  plan.processors = {{.gpu = 0, .tf32 = true}};
  const auto rounded = tiny::run_of(plan);
  CHECK(rounded.refusals() == "");
  plan.processors = {{.gpu = 0}};
  CHECK(rounded.result.parameters != tiny::run_of(plan).result.parameters);
}

TEST_CASE("tensor shards in tf32 are as near as its rounding allows", "[streams]") {
  auto plan =
    tiny::training_on({.tensor = 2}, gpipe(), {2, 4, 4}, clock_kind::virtual_time);
  plan.processors = {{.gpu = 0, .tf32 = true}};
  CHECK(tiny::run_of(plan).refusals() == "");
}

#endif

TEST_CASE("a GPU trains what the CPU trains", "[streams]") {
  auto plan = tiny::training_of(one_f_one_b(), {2, 4, 3}, clock_kind::virtual_time);
  const auto on_cpu = tiny::run_of(plan).result;
  plan.processors = {processor{0}};
  const auto on_gpu = tiny::run_of(plan).result;
  REQUIRE(on_cpu.loss.size() == on_gpu.loss.size());
  for (std::size_t i = 0; i < on_cpu.loss.size(); ++i)
    CHECK(std::abs(on_cpu.loss[i] - on_gpu.loss[i]) < 1e-5 * on_cpu.loss[i]);
  CHECK(on_cpu.parameters != on_gpu.parameters); // it was another processor
}

TEST_CASE("a run that a GPU has no memory for is refused with both numbers",
          "[streams]") {
  auto plan = tiny::training_of(gpipe(), {2, 4, 1}, clock_kind::real,
                                {"gpt", 2, 6144, 2, 8, 256});
  plan.processors = {processor{0}};
  CHECK(refusal(plan).starts_with("this run needs at least "));
  CHECK(
    refusal(plan).ends_with(" MiB of cuda:0's memory (2 ranks); it has 8192 MiB free"));
  CHECK(refusal(plan, {}, std::vector<int>{}).find("cuda:0") == std::string::npos);
  plan.processors = {processor{0}, processor{}}; // one of the two fits
  CHECK(refusal(plan).find("cuda:0") == std::string::npos);
}

TEST_CASE("ranks on the CPU and on a GPU train one network", "[streams]") {
  auto plan = tiny::training_of(one_f_one_b(), {2, 4, 3}, clock_kind::real);
  const auto on_cpu = tiny::run_of(plan).result;
  plan.processors = {processor{}, processor{0}};
  const auto mixed = perform(plan);
  REQUIRE(mixed.how == ending::finished);
  for (std::size_t i = 0; i < on_cpu.loss.size(); ++i)
    CHECK(std::abs(on_cpu.loss[i] - mixed.loss[i]) < 1e-5 * on_cpu.loss[i]);
}
