// SPDX-License-Identifier: BSD-3-Clause
// Data replicas that update parameters one by one: parameter servers, and hogwild.

#include "actors/proof/proof.hpp"
#include "actors/proof/replay.hpp"
#include "plan/stage_pools.hpp"
#include "tests/actors/brittle_data.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <stdexcept>

namespace troupe::async_exchange_test {

using Catch::Matchers::ContainsSubstring;

namespace {

#ifdef TROUPE_SANITIZED
const std::vector data_sizes{3}, stage_counts{2};
#else
const std::vector data_sizes{2, 3}, stage_counts{1, 2};
#endif

/// Slowdowns of data replicas; the last is the slowest.
std::vector<double> uneven(int data) {
  std::vector<double> result(static_cast<std::size_t>(data), 1);
  result.back() = 2.5;
  return result;
}

run_plan apart(run_plan plan, int data, const std::string& exchange) {
  plan.mesh[axis::data] = data;
  plan.exchange = find_exchange(exchange);
  plan.machine.slowdowns = uneven(data);
  plan.machine.links.inside = {.latency = 100'000, .bytes_per_second = 1e8};
  if (plan.work)
    plan.work->batch = std::int64_t{data} * plan.dims.microbatches + 1;
  return plan;
}

run_plan learning(const std::string& schedule, shape dims, clock_kind clock, int data,
                  const std::string& exchange) {
  return apart(tiny::training_of(*find_schedule(schedule), dims, clock), data,
               exchange);
}

void check_proofs(const run_plan& plan) {
  INFO(plan.sch.name << " " << plan.mesh[axis::data] << "x" << plan.dims.stages
                     << " by " << plan.exchange->name);
  REQUIRE(validation_error(plan).empty());
  const auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  for (const auto& p : prove(plan, result)) {
    INFO(p.name << ": " << p.detail);
    CHECK(!p.fails());
  }
  CHECK(result.late_allocations == 0);
  CHECK(result.reserved_bytes == bytes_needed(plan));
}

/// A simulation with one rank for each data replica, of batches that take 3 ms.
run_plan simulated(int steps, int data, const std::string& exchange) {
  return apart(tiny::simulation(gpipe(), {1, 1, steps}), data, exchange);
}

/// The time at which a data replica of one rank was done, in milliseconds.
double end_ms(const run_result& result, std::size_t data) {
  return static_cast<double>(result.actions[data].back().end) * 1e-6;
}

/// The number of updates by which a data replica is ahead of the slowest when a server
/// answers; the largest over the run.
int furthest_ahead(const run_plan& plan, const run_result& result) {
  int most = 0;
  for (const auto& accesses : result.accesses) {
    std::vector<int> applied(static_cast<std::size_t>(plan.mesh[axis::data]));
    for (const auto& [data, update] : accesses) {
      const int mine = applied[static_cast<std::size_t>(data)] += update;
      if (!update)
        most = std::max(most, mine - std::ranges::min(applied));
    }
  }
  return most;
}

} // namespace

TEST_CASE("updates of one data replica each are proved right under every schedule",
          "[async]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const std::string exchange =
    GENERATE("server:async", "server:staleness=0", "server:staleness=2", "hogwild");
  for (const auto& entry : tiny::one_of_each_kind({4, 4}))
    for (const int data : data_sizes)
      for (const int stages : stage_counts) {
        const auto plan =
          learning(std::string{entry.name}, {stages, 4, 3}, clock, data, exchange);
        const bool waits = plan.sch.local_rule() && plan.exchange->staleness;
        if (can_be_replayed(plan) && !waits
            && validation_error(plan.sch, plan.dims).empty())
          check_proofs(plan);
      }
}

TEST_CASE("updates of one data replica each clip by its own norm", "[async]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const std::string exchange = GENERATE("server:async", "hogwild");
  const auto scope = GENERATE(clip_scope::network, clip_scope::stage);
  for (const auto* name : {"1f1b", "chimera", "2bw"}) {
    auto plan = learning(name, {2, 4, 3}, clock, 2, exchange);
    plan.work->optimizer.clip = 0.05;
    plan.work->optimizer.scope = scope;
    plan.work->optimizer.schedule = {.cosine = true, .warmup = 9, .floor = 0.1};
    if (can_be_replayed(plan))
      check_proofs(plan);
  }
}

TEST_CASE("a replay in another order than the servers' is found out", "[async]") {
  const auto plan =
    learning("1f1b", {2, 4, 3}, clock_kind::virtual_time, 2, "server:async");
  auto result = perform(plan);
  auto& accesses = result.accesses[0];
  const shared_access slow{1, true}, fast{0, true};
  const auto from = std::ranges::find(accesses, slow),
             to = std::ranges::find(accesses, fast);
  REQUIRE((from != accesses.end() && to < from));
  std::rotate(to, from, from + 2); // the slow one's push and pull go first
  const auto again = replay(plan, result.actions, result.accesses);
  CHECK_FALSE(
    between(*plan.work, {result.loss, result.parameters, result.gradients}, again)
      .none());
  accesses.pop_back();
  CHECK_THROWS(replay(plan, result.actions, result.accesses));
}

TEST_CASE("in virtual time the order of updates is the same each time", "[async]") {
  const auto* const exchange = GENERATE("server:async", "hogwild");
  const auto plan =
    learning("pipedream", {2, 4, 4}, clock_kind::virtual_time, 3, exchange);
  const auto first = perform(plan), second = perform(plan);
  CHECK((first.accesses == second.accesses));
  CHECK((first.parameters == second.parameters));
  CHECK(first.loss == second.loss);
}

TEST_CASE("a fast data replica is held up by no slow one", "[async]") {
  const int steps = 20;
  const auto ring = perform(simulated(steps, 2, "ring")),
             async = perform(simulated(steps, 2, "server:async")),
             hogwild = perform(simulated(steps, 2, "hogwild"));
  CHECK(end_ms(ring, 0) > steps * 7.5);
  CHECK(end_ms(async, 0) < steps * (3 + 0.2 + 0.001)); // and the time of messages
  CHECK(end_ms(hogwild, 0) == steps * 3);
  CHECK(async.exchange.max.front() > 1);
  CHECK(async.exchange.mean.front() > 0.5);
}

TEST_CASE("without a common update nobody waits for whoever is slow this time",
          "[async]") {
  const auto makespan = [](const std::string& exchange) {
    auto plan = simulated(50, 2, exchange);
    plan.machine.slowdowns.clear();
    plan.machine.cost = [random = std::make_shared<std::mt19937>(1)](const work& what) {
      return what.kind < 2 ? nanoseconds{1'000'000} * ((*random)() % 4)
                           : nanoseconds{0};
    };
    return static_cast<double>(perform(plan).sums.makespan);
  };
  const double ring = makespan("ring");
  CHECK(makespan("hogwild") < 0.9 * ring);
  CHECK(makespan("server:async") < 0.9 * ring);
  CHECK(makespan("server:staleness=4") < 0.9 * ring);
}

TEST_CASE("no data replica gets further ahead than the bound, and some get as far",
          "[async]") {
  const int bound = GENERATE(0, 1, 3, 100);
  const auto plan = simulated(20, 3, "server:staleness=" + std::to_string(bound));
  const auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  const int reached = furthest_ahead(plan, result);
  CHECK(reached == std::min(bound, 12)); // 20 updates of 3.2 ms: the slow one makes 8
}

TEST_CASE("hogwild in real time learns from all data replicas", "[async][hogwild]") {
  auto plan = learning("1f1b", {2, 4, 30}, clock_kind::real, 3, "hogwild");
  plan.work->optimizer.rate = 0.003;
  const auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  CHECK(result.loss.size() == 30);
  CHECK(result.loss.back() < result.loss.front() - 0.1);
}

TEST_CASE("a failure ends a run whose replicas wait for one another", "[async]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const std::string exchange =
    GENERATE("server:staleness=0", "server:staleness=1", "server:async", "ring");
  auto plan = learning("1f1b", {2, 4, 40}, clock, 3, exchange);
  SECTION("of a data replica's data") {
    plan.work->data = std::make_shared<tiny::brittle_data>(
      plan.work->data, 5, [] { throw std::runtime_error("sample 5 is gone"); });
    const auto result = perform(plan);
    CHECK(result.outcome == ending::failed);
    CHECK(result.failure == "data_source of data replica 1: sample 5 is gone");
  }
  SECTION("of a data replica's arithmetic") {
    plan.work->optimizer = {.name = "sgd", .rate = 1e30};
    const auto result = perform(plan);
    CHECK(result.outcome == ending::failed);
    CHECK_THAT(result.failure, ContainsSubstring("stage 1") // of any data replica
                                 && ContainsSubstring("is not finite"));
  }
}

TEST_CASE("a tensor shard that fails ends the run with its name", "[async]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  auto plan = learning("1f1b", {2, 4, 40}, clock, 2, "ring");
  plan.mesh[axis::tensor] = 2;
  plan.work->shards = *make_shards<float>(tiny::gpt(), 2);
  plan.work->optimizer = {.name = "sgd", .rate = 1e30};
  const auto result = perform(plan);
  CHECK(result.outcome == ending::failed);
  CHECK_THAT(result.failure, ContainsSubstring("stage 1")
                               && ContainsSubstring("(tensor shard 0)")
                               && ContainsSubstring("is not finite"));
}

TEST_CASE("evaluations change no bits where updates are of one data replica each",
          "[async]") {
  const auto* const exchange =
    GENERATE("server:async", "server:staleness=1", "hogwild");
  const auto clock = GENERATE(from_range(tiny::clocks()));
  auto plan = learning("1f1b", {2, 4, 4}, clock, 2, exchange);
  const auto without = perform(plan);
  std::vector<int> evaluated;
  plan.copies.evaluate_every = 1;
  const auto with =
    perform(plan, {.evaluate = [&](int batches, const std::vector<const float*>&) {
              evaluated.push_back(batches);
            }});
  REQUIRE(with.outcome == ending::finished);
  CHECK(evaluated == std::vector{1, 2, 3, 4});
  if (clock == clock_kind::virtual_time)
    CHECK((with.parameters == without.parameters));
}

TEST_CASE("an interrupted run keeps what servers and hogwild hold", "[async]") {
  const auto* const exchange =
    GENERATE("server:async", "server:staleness=0", "hogwild");
  const auto clock = GENERATE(from_range(tiny::clocks()));
  auto plan = learning("1f1b", {2, 4, 100'000}, clock, 2, exchange);
  plan.keep.record = false;
  std::atomic<bool> interrupted = false;
  const auto end_soon = [&](const progress& p) {
    if (p.loss)
      interrupted = true;
  };
  const auto result = perform(plan, {.report = end_soon, .interrupted = &interrupted});
  CHECK(result.outcome == ending::interrupted);
  CHECK(result.failure.empty());
  REQUIRE(result.parameters.size() == plan.work->whole.layers.size());
  std::vector<float> initial(result.parameters.front().size());
  plan.work->weights(0, initial.data());
  CHECK((result.parameters.front() != initial));
}

TEST_CASE("what cannot be updated one by one is refused in a sentence", "[async]") {
  const auto wrong = [](const std::string& schedule, const std::string& exchange,
                        int tensor = 1) {
    auto plan =
      apart(tiny::simulation(*find_schedule(schedule), {2, 4, 1}), 2, exchange);
    plan.mesh[axis::tensor] = tensor;
    return validation_error(plan);
  };
  CHECK(wrong("ampnet", "server:async").empty());
  CHECK(wrong("ampnet", "hogwild").empty());
  CHECK_THAT(wrong("ampnet", "ring"), ContainsSubstring("no common updates"));
  CHECK_THAT(wrong("ampnet", "server:staleness=1"),
             ContainsSubstring("cannot wait for slower replicas"));
  CHECK_THAT(wrong("1f1b", "hogwild", 2), ContainsSubstring("give --mesh tensor=1"));
}

TEST_CASE("an exchange's parameter is read from its name", "[async]") {
  CHECK(find_exchange("server:staleness=2")->staleness == 2);
  CHECK(find_exchange("server:staleness=007")->name == "server:staleness=7");
  CHECK_FALSE(find_exchange("server:async")->staleness);
  for (const auto* wrong : {"server:staleness=", "server:staleness=-1",
                            "server:staleness=x", "server:staleness=1.5"})
    CHECK_THAT(parse_exchange(wrong).error(),
               ContainsSubstring("a whole number from 0"));
  for (const auto* wrong : {"server:", "server:staleness", "hogwild=1", ""})
    CHECK_THAT(parse_exchange(wrong).error(),
               ContainsSubstring("there is no exchange"));
}

} // namespace troupe::async_exchange_test
