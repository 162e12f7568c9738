// SPDX-License-Identifier: BSD-3-Clause
// The times that a run would have taken with one device for each rank. Runs in virtual
// time are the oracle: each rank has a device, so modelled times must equal the run's
// own.

#include "actors/run/modelled_times.hpp"

#include "actors/run/recorder.hpp"
#include "kernels/processor_time.hpp"
#include "tests/actors/brittle_layer.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

namespace troupe::modelled_times_test {

namespace {

#ifdef TROUPE_SANITIZED
constexpr int plans = 20;
#else
constexpr int plans = 400;
#endif

/// Random costs in whole microseconds, in a random sequence of their own for each rank.
cost_model random_costs(std::mt19937::result_type seed) {
  return [random = std::mt19937{seed}](const work& w) mutable -> nanoseconds {
    const auto cost = std::uniform_int_distribution<nanoseconds>{1, 50}(random)*1000;
    return w.kind < op_count ? cost : 0;
  };
}

/// A record without parts that took no time.
record shown(record ran) {
  for (auto& row : ran)
    std::erase_if(row,
                  [](const measured_action& s) { return s.part && s.start == s.end; });
  return ran;
}

void check_model(run_plan plan, const std::string& name) {
  INFO(name << ": " << plan.sch.name << " " << plan.dims.stages << "x"
            << plan.dims.microbatches << "x" << plan.dims.steps);
  REQUIRE(validation_error(plan).empty());
  const auto was = perform(plan);
  INFO(was.failure);
  REQUIRE(was.outcome == ending::finished);
  plan.observed.model_times = true;
  const auto modelled = perform(plan);
  INFO(modelled.failure);
  REQUIRE(modelled.outcome == ending::finished);
  const auto expected = shown(was.actions);
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    REQUIRE(modelled.actions[rank].size() == expected[rank].size());
    for (std::size_t i = 0; i < expected[rank].size(); ++i) {
      const auto &a = expected[rank][i], &b = modelled.actions[rank][i];
      INFO("rank " << rank << ", " << i << ": " << to_string(a.action, true));
      REQUIRE(a.action == b.action);
      REQUIRE(a.start == b.start);
      REQUIRE(a.end == b.end);
    }
  }
  CHECK(modelled.sums.makespan == was.sums.makespan);
  CHECK(modelled.sums.busy == was.sums.busy);
  CHECK(modelled.sums.span_idle == was.sums.span_idle);
  CHECK(modelled.loss_times == was.loss_times);
  CHECK(was.loss_times.size() == was.loss.size());
}

int any(std::mt19937& random, int from, int to) {
  return std::uniform_int_distribution{from, to}(random);
}

template <class Value>
Value any_of(std::mt19937& random, const std::vector<Value>& all) {
  return all[static_cast<std::size_t>(
    any(random, 0, static_cast<int>(all.size()) - 1))];
}

const std::vector<std::string> exchanges{"naive",  "tree",  "ring",  "halving",
                                         "server", "zero1", "zero2", "zero3"};

/// A random schedule that the sizes allow.
schedule any_schedule(std::mt19937& random, shape dims) {
  for (;;) {
    const auto& entry =
      any_of(random, std::vector<catalog_entry>(catalog().begin(), catalog().end()));
    auto sch = *find_schedule(entry.name);
    if (sch.name == "pipedream")
      sch = pipedream(any(random, 1, 3), any(random, 0, 1) == 1);
    if (validation_error(sch, dims).empty())
      return sch;
  }
}

} // namespace

TEST_CASE("the model of a simulation is the simulation", "[model]") {
  std::mt19937 random{11};
  for (int i = 0; i < plans; ++i) {
    const shape dims{any(random, 1, 5), any(random, 1, 6), any(random, 1, 3)};
    auto plan = tiny::simulation(any_schedule(random, dims), dims);
    plan.machine.cost = random_costs(random());
    if (!plan.sch.local_rule()) {
      plan.mesh[axis::data] = any(random, 1, 4);
      plan.mesh[axis::tensor] = any(random, 1, 3);
    }
    plan.sequence_parallel = plan.mesh[axis::tensor] > 1 && any(random, 0, 1) == 1;
    plan.exchange = find_exchange(any_of(random, exchanges));
    plan.work.simulated().buckets = any(random, 1, 4);
    plan.work.simulated().sums = any(random, 1, 3);
    check_model(plan, "data=" + std::to_string(plan.mesh[axis::data])
                        + " tensor=" + std::to_string(plan.mesh[axis::tensor]) + " "
                        + plan.exchange->name);
  }
}

TEST_CASE("the model of a training in virtual time is the training", "[model]") {
  std::mt19937 random{12};
  for (int i = 0; i < plans / 4; ++i) {
    const shape dims{any(random, 1, 4), any(random, 2, 5), any(random, 1, 3)};
    auto sch = any_schedule(random, dims);
    tiny::mesh_of_ranks mesh{.exchange = any_of(random, exchanges)};
    if (!sch.local_rule()) {
      mesh.data = any(random, 1, 3);
      mesh.clips = any(random, 0, 2) > 0;
    }
    mesh.experts = any(random, 0, 3) == 0;
    if (mesh.experts && (mesh.exchange == "zero2" || mesh.exchange == "zero3"))
      mesh.exchange = "zero1";
    if (!mesh.experts && !sch.local_rule())
      mesh.tensor = any(random, 1, 2);
    mesh.by_sequence = mesh.tensor > 1 && any(random, 0, 1) == 1;
    auto plan = tiny::training_on(mesh, sch, dims, clock_kind::virtual_time);
    plan.machine.cost = random_costs(random());
    check_model(plan, mesh.text());
  }
}

TEST_CASE("the model of an interrupted run is of what ran", "[model]") {
  auto plan = tiny::training_on({.data = 2, .exchange = "zero3"}, one_f_one_b(),
                                {2, 4, 100}, clock_kind::virtual_time);
  std::atomic<bool> interrupted = false;
  plan.machine.cost = [&interrupted, begun = 0](const work&) mutable {
    interrupted = interrupted || ++begun > 100;
    return 1000;
  };
  plan.observed.model_times = true;
  const auto result = perform(plan, {.interrupted = &interrupted});
  REQUIRE(result.outcome == ending::interrupted);
  CHECK(result.sums.makespan > 0);
  nanoseconds last = 0;
  for (const auto& row : result.actions)
    last = std::max(last, row.back().end);
  CHECK(result.sums.makespan == last);
}

TEST_CASE("in real time a model has the lengths of what ran", "[model]") {
  auto plan = tiny::training_on({.data = 2, .exchange = "zero1", .clips = true},
                                chimera(), {4, 4, 5}, clock_kind::real);
  plan.observed.model_times = true;
  const auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  for (std::size_t rank = 0; rank < result.actions.size(); ++rank) {
    nanoseconds busy = 0, free_at = 0;
    for (const auto& s : result.actions[rank]) {
      CHECK(s.start >= free_at);
      free_at = s.end;
      busy += s.end - s.start;
    }
    CHECK(result.sums.busy[rank] == busy);
    CHECK(result.sums.makespan >= free_at);
  }
}

TEST_CASE("other programs stretch no modelled time", "[model]") {
  std::mt19937 random{13};
  for (const auto& sch : {gpipe(), one_f_one_b(), zb_h1(), pipedream()}) {
    auto plan = tiny::simulation(sch, {4, 4, 3});
    plan.machine.cost = random_costs(random());
    const auto was = perform(plan);
    REQUIRE(was.outcome == ending::finished);
    plan.observed.model_times = true;
    run_log log{plan};
    for (std::size_t rank = 0; rank < was.actions.size(); ++rank) {
      auto disturbed = was.actions[rank];
      for (auto& s : disturbed)
        if (any(random, 0, 1) == 1) {
          s.off_processor_time = any(random, 1, 1'000'000);
          s.end += s.off_processor_time;
        }
      log.add(static_cast<int>(rank), disturbed);
    }
    const auto modelled = *log.modelled(true);
    CHECK(modelled.makespan == was.sums.makespan);
    CHECK(modelled.busy == was.sums.busy);
    CHECK(modelled.bubble() == was.sums.bubble());
  }
}

TEST_CASE("a planted sleep is other programs' time, and planted work is not",
          "[model]") {
  constexpr nanoseconds planted = 10'000'000, most_doubt = 1'000'000;
  auto plan =
    tiny::training_of(one_f_one_b(), {3, 4, 3}, clock_kind::real, tiny::gpt(), 0, 1);
  auto& layers = plan.work->whole.layers;
  const auto plant = [&](int stage, std::function<void()> happens) {
    auto& layer = layers[static_cast<std::size_t>(
      plan.work->first_layers[static_cast<std::size_t>(stage)])];
    layer = std::make_shared<tiny::brittle_layer>(layer, 5, std::move(happens));
  };
  plant(1, [] { std::this_thread::sleep_for(std::chrono::milliseconds{10}); });
  plant(2, [] {
    for (const auto start = processor_clock{}.now();
         processor_clock{}.now() < start + planted;) {
    }
  });
  plan.observed.model_times = GENERATE(true, false);
  const auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  nanoseconds longest_sleep = 0, longest_work = 0;
  for (const auto& s : result.actions[1])
    longest_sleep = std::max(longest_sleep, s.off_processor_time);
  for (const auto& s : result.actions[2])
    longest_work = std::max(longest_work,
                            s.end - s.start
                              - (plan.observed.model_times ? 0 : s.off_processor_time));
  CHECK(longest_sleep >= planted - most_doubt);
  CHECK(longest_work >= planted - most_doubt);
  const auto& sums = result.sums;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    nanoseconds off_processor_time = 0;
    for (const auto& s : result.actions[rank])
      off_processor_time += s.off_processor_time;
    CHECK(sums.off_processor_time[rank] == off_processor_time);
    CHECK(sums.wall_time[rank] - sums.busy[rank]
          == (plan.observed.model_times ? off_processor_time : 0));
  }
}

TEST_CASE("there is no model of what nobody knows the order of", "[model]") {
  auto plan = tiny::simulation(gpipe(), {1, 4, 1});
  plan.mesh[axis::data] = 2;
  for (const char* name : {"ring", "zero3", "server"}) {
    plan.exchange = find_exchange(name);
    CHECK(modelled_times::can_model(plan));
  }
  for (const char* name : {"server:async", "server:staleness=1", "hogwild"}) {
    plan.exchange = find_exchange(name);
    CHECK_FALSE(modelled_times::can_model(plan));
  }
  plan.exchange = find_exchange("ring");
  plan.mesh[axis::expert] = 2;
  CHECK_FALSE(modelled_times::can_model(plan));
}

} // namespace troupe::modelled_times_test
