// SPDX-License-Identifier: BSD-3-Clause
// Runs in which an actor, a thread or an allocation fails, or which end early.

#include "actors/checkpoints/gathered_state.hpp"
#include "plan/stage_pools.hpp"
#include "tests/actors/brittle_data.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

namespace troupe::failure_test {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("an actor that fails ends the run with its name and reason", "[failure]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto entry = GENERATE(from_range(tiny::one_of_each_kind({4, 4})));
  auto plan = tiny::training_of(*find_schedule(entry.name), {4, 4, 3}, clock);
  plan.work->data = std::make_shared<tiny::brittle_data>(
    plan.work->data, 13, [] { throw std::runtime_error("the disk is on fire"); });
  const auto result = perform(plan);
  CHECK(result.outcome == ending::failed);
  CHECK(result.failure == "data_source: the disk is on fire");
}

TEST_CASE("a data replica that fails ends a run whose experts wait for it",
          "[failure]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const model_options model{"moe", 4, 8, 2, 4, 11, {.count = 4}};
  auto plan = tiny::training_of(*find_schedule("1f1b"), {2, 4, 3}, clock, model, 16);
  plan.mesh[axis::data] = plan.mesh[axis::expert] = 2;
  plan.exchange = find_exchange("ring");
  plan.work->shards = {make_without_experts<float>(model)};
  plan.work->experts = model.experts;
  plan.work->data = std::make_shared<tiny::brittle_data>(
    plan.work->data, 13, [] { throw std::runtime_error("the disk is on fire"); });
  const auto result = perform(plan);
  CHECK(result.outcome == ending::failed);
  CHECK(result.failure == "data_source of data replica 1: the disk is on fire");
}

// Any actor may fail, at any message: the run ends with that reason, all actors of the
// run end, and no buffer is lost. Virtual time repeats each such failure.
TEST_CASE("a run whose actor fails at any one of its messages ends with the reason",
          "[failure]") {
  struct small_run {
    tiny::mesh_of_ranks mesh;
    schedule sch;
    int stages;
  };
#ifdef TROUPE_SANITIZED
  const int every = 23;
#else
  const int every = 1;
#endif
  const std::vector<small_run> runs{
    {{}, one_f_one_b(), 2},
    {{}, chimera(), 2},
    {{}, ampnet(2, 1), 2},
    {{.tensor = 2}, gpipe(), 1},
    {{.data = 2, .exchange = "zero1", .clips = true}, one_f_one_b(), 1},
    {{.data = 2, .exchange = "zero3"}, two_bw(), 2},
    {{.data = 2, .expert = 2, .experts = true}, one_f_one_b(), 1}};
  const auto& one = GENERATE_REF(from_range(runs));
  const auto plan =
    tiny::training_on(one.mesh, one.sch, {one.stages, 2, 1}, clock_kind::virtual_time);
  INFO(one.mesh.text() << " under " << one.sch.name);
  int all = 0;
  REQUIRE(
    perform(plan, {.listener = [&](const char*, const std::string&) { ++all; }}).outcome
    == ending::finished);
  for (int at = 0; at < all; at += every) {
    int heard = 0;
    std::string who;
    const auto result =
      perform(plan, {.listener = [&](const char* receiver, const std::string&) {
                if (heard++ != at)
                  return;
                who = receiver;
                throw std::runtime_error("struck by lightning");
              }});
    INFO("message " << at << " of " << all << ", of " << who);
    // A report that comes when the run is over changes nothing any more.
    if (result.outcome == ending::finished)
      CHECK((who == "recorder" || who == "coordinator"));
    else
      REQUIRE(result.failure == who + ": struck by lightning");
  }
}

TEST_CASE("a loss that is not finite ends the run and says where", "[failure]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto entry = GENERATE(from_range(tiny::one_of_each_kind({4, 4})));
  auto plan = tiny::training_of(*find_schedule(entry.name), {4, 4, 30}, clock);
  plan.work->optimizer = {.name = "sgd", .rate = 1e30};
  const auto result = perform(plan);
  CHECK(result.outcome == ending::failed);
  CHECK_THAT(result.failure, ContainsSubstring("stage 3")
                               && ContainsSubstring("the loss of microbatch ")
                               && ContainsSubstring("is not finite")
                               && ContainsSubstring("on weight version "));
}

TEST_CASE("a run that is interrupted keeps what it has", "[interruption]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto entry = GENERATE(from_range(tiny::one_of_each_kind({4, 4})));
  auto plan =
    tiny::training_of(*find_schedule(entry.name), {4, 4, 100'000}, clock, tiny::gpt(4));
  std::atomic<bool> interrupted = false;
  plan.keep.record = false;
  const auto end_soon = [&](const progress& p) {
    if (p.loss)
      interrupted = true;
  };
  const auto result = perform(plan, {.report = end_soon, .interrupted = &interrupted});
  CHECK(result.outcome == ending::interrupted);
  CHECK(result.failure.empty());
  CHECK_FALSE(result.loss.empty());
  CHECK(result.loss.size() < 100'000);
  CHECK(result.samples == result.loss_samples.back());
  CHECK(result.parameters.size() == plan.work->whole.layers.size());
  CHECK(result.sums.makespan > 0);
}

TEST_CASE("plans that cannot be are refused with what can", "[refusal]") {
  const auto refused = [](const run_plan& plan) { return validation_error(plan); };
  auto plan = tiny::training_of(gpipe(), {2, 4, 1}, clock_kind::real);
  CHECK(refused(plan).empty());
  plan.work->batch = 3;
  CHECK_THAT(refused(plan), ContainsSubstring("3 samples cannot be cut into 4"));
  plan = tiny::training_of(pipedream(), {2, 4, 1}, clock_kind::real);
  plan.work->optimizer.clip = 1;
  CHECK_THAT(refused(plan), ContainsSubstring("pipedream:clip=stage"));
  plan.work->optimizer.scope = clip_scope::stage;
  CHECK(refused(plan).empty());
  plan = tiny::training_of(ampnet(), {2, 4, 1}, clock_kind::real);
  plan.work->optimizer.clip = 1;
  CHECK_THAT(refused(plan), ContainsSubstring("ampnet:clip=stage"));
  CHECK_THAT(refused(tiny::simulation(two_bw(), {4, 2})), ContainsSubstring("2bw"));
}

TEST_CASE("a run that would not fit is refused with the number", "[refusal]") {
  auto plan = tiny::training_of(gpipe(), {2, 4, 1}, clock_kind::real,
                                {"gpt", 2, 32'768, 2, 8, 256});
  CHECK_THAT(validation_error(plan), ContainsSubstring(" MiB of memory")
                                       && ContainsSubstring("on its largest rank")
                                       && ContainsSubstring("the machine has"));
}

TEST_CASE("what the caller of a training takes besides counts as needed", "[refusal]") {
  auto plan = tiny::training_of(gpipe(), {2, 4, 1}, clock_kind::real);
  const auto much = [](const run_plan&) { return caller_bytes{std::int64_t{1} << 60}; };
  CHECK_THAT(validation_error(plan, much),
             ContainsSubstring("this run needs 10995116278"));
  CHECK(
    validation_error(plan, [](const run_plan&) { return caller_bytes{1}; }).empty());
}

TEST_CASE("what is taken at wiring is what was announced", "[refusal]") {
  const auto& entry = GENERATE(from_range(catalog()));
  for (const char* model : {"gpt", "lenet"}) {
    auto options = tiny::gpt();
    options.model = model;
    auto plan = tiny::training_of(*find_schedule(entry.name), {4, 8, 3},
                                  clock_kind::virtual_time, options);
    const auto announced = bytes_needed(plan);
    const auto result = perform(plan);
    for (std::size_t rank = 0; rank < announced.size(); ++rank) {
      CHECK(result.reserved_bytes[rank] == announced[rank]);
      CHECK(result.peak_bytes[rank] <= announced[rank]);
      CHECK(result.peak_bytes[rank] > announced[rank] / 2);
    }
  }
}

TEST_CASE("a run that fails while copies for a checkpoint lie about ends in peace",
          "[failure]") {
  const int sample = GENERATE(9, 13, 17);
  auto plan = tiny::training_of(one_f_one_b(), {2, 2, 6}, clock_kind::real);
  plan.copies.checkpoint_every = 1;
  plan.work->data = std::make_shared<tiny::brittle_data>(plan.work->data, sample, [] {
    std::this_thread::sleep_for(60ms);
    throw std::runtime_error("the disk is on fire");
  });
  const auto result = perform(
    plan, {.save = [](const training_copies&) {},
           .await_saved = [] { std::this_thread::sleep_for(30ms); },
           .report = [](const progress&) { std::this_thread::sleep_for(50ms); }});
  CHECK(result.outcome == ending::failed);
  CHECK_THAT(result.failure, ContainsSubstring("the disk is on fire"));
}

} // namespace troupe::failure_test
