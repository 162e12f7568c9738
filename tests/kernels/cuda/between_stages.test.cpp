// SPDX-License-Identifier: BSD-3-Clause
// The messages between stages on simulated GPUs in whole runs. Messages leave before a
// tensor is computed, and by channels between stages on GPUs of their own.

#include "actors/pipeline/stage_tensors.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"
#include "plan/gpu_groups.hpp"
#include "tests/actors/proved_run.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/random/wish.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe::between_stages_test {

namespace {

/// The events of other streams that streams wait for in a run.
std::int64_t passed_by(run_plan plan, std::vector<processor> on) {
  plan.machine.processors = std::move(on);
  const auto before = on_host::marks_passed();
  const auto done = tiny::run_of(plan);
  if (!plan.machine.mixes_processors(plan.ranks()))
    CHECK(done.refusals() == "");
  return on_host::marks_passed() - before;
}

/// 32 messages: of 4 microbatches, over 2 boundaries, in 2 batches, both ways.
run_plan with_32_messages(const schedule& sch, clock_kind clock) {
  return tiny::training_of(sch, {3, 4, 2}, clock, {"mlp", 5, 12});
}

constexpr processor first_gpu{0}, second_gpu{1}, this_cpu{};

} // namespace

TEST_CASE("messages between GPUs leave before they are made", "[streams]") {
  const auto of = with_32_messages;
  setenv("TROUPE_NCCL", "off", 1); // messages carry the tensors
  CHECK(passed_by(of(one_f_one_b(), clock_kind::real), {first_gpu}) == 32);
  CHECK(passed_by(of(one_f_one_b(), clock_kind::real), {first_gpu, second_gpu}) == 32);
  CHECK(passed_by(of(find_schedule("pipedream").value(), clock_kind::real),
                  {first_gpu, second_gpu})
        == 32);
  CHECK(passed_by(of(find_schedule("zb-h1").value(), clock_kind::real),
                  {second_gpu, first_gpu, first_gpu})
        == 32);
  CHECK(
    passed_by(of(one_f_one_b(), clock_kind::real), {first_gpu, second_gpu, this_cpu})
    == 16);
  CHECK(passed_by(of(one_f_one_b(), clock_kind::real), {first_gpu, this_cpu}) == 0);
  CHECK(passed_by(of(one_f_one_b(), clock_kind::virtual_time), {first_gpu}) == 0);
  CHECK(passed_by(of(find_schedule("ampnet").value(), clock_kind::real), {first_gpu})
        == 0); // a local rule chooses by arrivals
  CHECK(passed_by(
          tiny::training_on({.tensor = 2}, one_f_one_b(), {2, 2, 2}, clock_kind::real),
          {first_gpu})
        == 0); // shards meet
  setenv("TROUPE_MARKS", "off", 1);
  CHECK(passed_by(of(one_f_one_b(), clock_kind::real), {first_gpu, second_gpu}) == 0);
  unsetenv("TROUPE_MARKS");
  unsetenv("TROUPE_NCCL");
}

TEST_CASE("stages on GPUs of their own have room for what they give each other",
          "[streams]") {
  auto plan = with_32_messages(one_f_one_b(), clock_kind::real);
  plan.machine.processors = {first_gpu, second_gpu};
  const auto needed = bytes_needed(plan);
  CHECK(perform(plan).reserved_bytes == needed);
  plan.machine.processors = {first_gpu};
  CHECK(needed > bytes_needed(plan));
}

TEST_CASE("GPUs give each other what has been launched", "[streams]") {
  // The sender's stream waits for the pass that computes a tensor, and the receiver's
  // pass waits for the receive. Now and then a buffer is needed again before the buffer
  // has been sent.
  const auto of = with_32_messages;
  const auto with = [](std::int64_t marks, std::int64_t messages) {
    return marks >= 2 * messages && marks <= 4 * messages;
  };
  for (const char* name : {"1f1b", "pipedream", "zb-h1"})
    CHECK(with(passed_by(of(find_schedule(name).value(), clock_kind::real),
                         {first_gpu, second_gpu}),
               32));
  CHECK(with(
    passed_by(of(one_f_one_b(), clock_kind::real), {first_gpu, second_gpu, this_cpu}),
    16));
}

TEST_CASE("a run whose GPUs cannot give each other tensors ends, and says which",
          "[streams]") {
  const int number = GENERATE(0, 1, 7, 20, 31, 62);
  const bool marks = GENERATE(true, false);
  INFO("exchange " << number << ", marks " << marks);
  auto plan = with_32_messages(one_f_one_b(), clock_kind::real);
  plan.machine.processors = {first_gpu, second_gpu};
  plan.machine.stall_timeout = std::chrono::seconds{20}; // does not end the run here
  const auto edges = static_cast<int>(groups_on_gpus(plan, local_gpus(plan)).size());
  REQUIRE(edges == 4);
  if (!marks)
    setenv("TROUPE_MARKS", "off", 1);
  on_host::break_exchange(number + 2 * edges); // the first exchanges are the trial's
  const auto result = perform(plan);
  unsetenv("TROUPE_MARKS");
  CHECK(result.outcome == ending::failed);
  INFO(result.failure);
  CHECK(result.failure.find(" has lost its GPU") != std::string::npos);
}

TEST_CASE("the record has no action before what it reads, nor two of a rank at once",
          "[streams]") {
  const std::string name = GENERATE("1f1b", "gpipe", "zb-h1", "chimera", "2bw");
  auto plan = tiny::training_of(find_schedule(name).value(), {4, 8, 3},
                                clock_kind::real, {"mlp", 5, 12});
  plan.machine.processors = {{0}, {1}};
  keep_for_proofs(plan);
  for (std::uint64_t seed = 1; seed <= 5 * gpu::seeds(); ++seed) {
    INFO(name << ", seed " << seed);
    on_host::seed_streams(seed);
    const auto result = perform(plan);
    REQUIRE(result.outcome == ending::finished);
    std::map<std::tuple<bool, int, int, int>, measured_action> makers;
    for (const auto& row : result.actions)
      for (const auto& s : row)
        if (s.action.op == op::forward || goes_back(s.action.op))
          makers[{s.action.op == op::forward, s.action.direction, s.action.stage,
                  s.action.microbatch}] = s;
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
  plan.machine.processors = {processor{0}};
  rank_memory memory;
  pool samples{"samples", 8, 64, memory.account(memory_use::activations)};
  stream on;
  const boundary between{boundary_pool(plan, {0, 0, 0}, memory), true};
  stage_tensors below{plan, {0, 0, 0}, memory, on, {}, between},
    above{plan, {0, 0, 1}, memory, on, between, {}};
  const auto launch = [&](stage_tensors& stage, op what, int microbatch) {
    const int number = &stage == &below ? 0 : 1;
    stage.pieces({.pass_action = {what, 0, number, microbatch},
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
  for (const int m : {0, 1}) // the upper stage has no report of the ends
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

} // namespace troupe::between_stages_test
