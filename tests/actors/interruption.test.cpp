// SPDX-License-Identifier: BSD-3-Clause
// A run that is ended early: the result is a network that existed after some update.

#include "actors/proof/replay.hpp"
#include "plan/replica_rules.hpp"
#include "tests/actors/brittle_data.hpp"
#include "tests/actors/seeded_devices.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>

namespace troupe::interruption_test {

namespace {

#ifdef TROUPE_SANITIZED
constexpr int moments = 2;
#else
constexpr int moments = 4;
#endif

using buckets = std::vector<std::vector<float>>;

/// Losses that a run reported while running.
struct reported_losses {
  std::vector<double> values;
  std::vector<std::int64_t> samples;
  std::int64_t last_samples = 0;

  void add(const progress& p) {
    for (const auto& one : p.losses) {
      values.push_back(one.loss);
      samples.push_back(one.samples);
    }
    last_samples = p.samples;
  }
};

/// Runs a plan in virtual time, and interrupts the run when the given number of works
/// have begun.
run_result interrupted_after(run_plan plan, int works) {
  std::atomic<bool> interrupted = false;
  plan.machine.cost = [&interrupted, works, cost = plan.machine.cost,
                       begun = 0](const work& w) mutable {
    interrupted = interrupted || ++begun >= works;
    return cost(w);
  };
  reported_losses told;
  auto result = perform(plan, {.report = [&](const progress& p) { told.add(p); },
                               .interrupted = &interrupted});
  INFO(result.failure);
  REQUIRE(result.outcome == ending::interrupted);
  CHECK(told.values == result.loss);
  CHECK(told.samples == result.loss_samples);
  if (updates_are_by(
        plan,
        update_by::all_replicas)) // else replicas end after different updates
    CHECK(told.last_samples == result.samples);
  return result;
}

/// Runs a plan on devices of random speed. Interrupts the run after the given number of
/// rounds of handlers: with two passes under way, or one in line.
run_result interrupted_in_disorder(run_plan plan, int rounds) {
  std::atomic<bool> interrupted = false;
  auto disorder = tiny::disorder_of(static_cast<std::uint64_t>(rounds));
  disorder.handlers = [&interrupted, rounds, handlers = disorder.handlers,
                       begun = 0]() mutable {
    interrupted = interrupted || ++begun >= rounds;
    return handlers();
  };
  auto result =
    perform(plan, {.disorder = std::move(disorder), .interrupted = &interrupted});
  INFO(result.failure);
  REQUIRE(result.outcome == ending::interrupted);
  return result;
}

/// The result of a run that ends after the given number of updates of every stage.
run_result after(run_plan plan, std::int64_t updates) {
  if (updates == 0) {
    run_result initial;
    for (std::size_t l = 0; l < plan.work->whole.layers.size(); ++l)
      plan.work->weights(
        l,
        initial.parameters.emplace_back(plan.work->whole.layers[l]->bucket()).data());
    return initial;
  }
  plan.copies.evaluate_every = 0;
  plan.keep.record = false;
  plan.dims.steps = static_cast<int>(updates);
  auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  return result;
}

using rows_of_steps = std::map<std::size_t, std::vector<std::vector<std::int64_t>>>;

/// Rows of each expert, and dropped choices, by layer and step.
rows_of_steps rows_of(const expert_loads& loads) {
  rows_of_steps result;
  for (const auto& [layer, steps] : loads.by_layer)
    for (const auto& one : steps) {
      result[layer].push_back(one.rows);
      result[layer].back().push_back(one.dropped);
    }
  return result;
}

/// Samples of a data replica's microbatches whose backwards have run.
std::int64_t samples_backwarded(const run_plan& plan, const record& ran) {
  std::int64_t sum = 0;
  for (std::size_t rank = 0; rank < ran.size(); ++rank)
    for (const auto& s : ran[rank])
      if (!s.part && s.action.op == op::backward && s.action.stage == 0)
        sum += plan.samples_of(plan.hosted_by(static_cast<int>(rank)).front().data,
                               s.action.microbatch);
  return sum;
}

/// The actions behind a run's updates, without actions that had begun beyond the last
/// update.
record what_counts(const record& ran) {
  record result;
  for (const auto& row : ran) {
    std::map<std::pair<int, int>, std::size_t> last; // update
    for (std::size_t i = 0; i < row.size(); ++i)
      if (row[i].action.op == op::update)
        last[{row[i].action.direction, row[i].action.stage}] = i;
    std::set<std::tuple<int, int, int>> summed; // direction, stage, microbatch
    auto& kept = result.emplace_back();
    for (std::size_t i = row.size(); i-- > 0;) {
      const auto& a = row[i].action;
      const auto found = last.find({a.direction, a.stage});
      if (found == last.end() || i > found->second)
        continue;
      const std::tuple of{a.direction, a.stage, a.microbatch};
      if (a.op != op::forward && a.op != op::update)
        summed.insert(of);
      if (a.op != op::forward || summed.contains(of))
        kept.insert(kept.begin(), row[i]);
    }
  }
  return result;
}

const std::vector<tiny::mesh_of_ranks> meshes{
  {},
  {.clips = true},
  {.data = 2},
  {.data = 2, .exchange = "zero1", .clips = true},
  {.data = 2, .exchange = "zero2"},
  {.data = 3, .exchange = "zero3", .clips = true},
  {.data = 2, .exchange = "server"},
  {.tensor = 2},
  {.data = 2, .tensor = 2, .exchange = "zero3", .by_sequence = true, .clips = true},
  {.experts = true},
  {.data = 2, .expert = 2, .experts = true, .clips = true},
};

} // namespace

TEST_CASE("an interrupted run whose stages update together leaves the network of one "
          "update",
          "[interruption]") {
  const auto name = GENERATE("naive", "gpipe", "1f1b", "chimera", "2bw");
  const auto& mesh = GENERATE(from_range(meshes));
  const auto plan =
    tiny::training_on(mesh, *find_schedule(name), {2, 4, 50}, clock_kind::virtual_time);
  REQUIRE(validation_error(plan).empty());
  std::mt19937 random{7};
  for (int i = 0; i < moments; ++i) {
    const int works = std::uniform_int_distribution{1, 150}(random);
    INFO(name << " " << mesh.text() << ", interrupted at work or round " << works);
    const auto result = i % 2 == 0 ? interrupted_after(plan, works)
                                   : interrupted_in_disorder(plan, works);
    CHECK(std::ranges::count(result.updates, result.updates.front()) == 2);
    CHECK(result.updated_samples == result.updates.front() * plan.work->batch);
    const auto whole = after(plan, result.updates.front());
    CHECK((result.parameters == whole.parameters));
    CHECK(result.odd_stage.empty());
    CHECK(result.samples == result.updated_samples);
    CHECK(result.loss == whole.loss); // no forward that the updates do not cover
    CHECK(result.loss_samples == whole.loss_samples);
    CHECK((rows_of(result.loads) == rows_of(whole.loads)));
  }
}

TEST_CASE("an interrupted pipedream leaves what its record says, after one update",
          "[interruption]") {
  const int every = GENERATE(1, 3);
  const auto exchange = GENERATE("none", "ring", "zero1");
  const bool alone = exchange == std::string{"none"};
  const auto plan =
    tiny::training_on({.data = alone ? 1 : 2, .exchange = alone ? "ring" : exchange},
                      pipedream(every), {4, 4, 50}, clock_kind::virtual_time);
  for (int works = 1, i = 0; works < 200; works += 200 / moments, ++i) {
    const auto result = i % 2 == 0 ? interrupted_after(plan, works)
                                   : interrupted_in_disorder(plan, works);
    const auto updates = result.updates.front();
    CHECK(std::ranges::count(result.updates, updates) == 4);
    CHECK((result.parameters == replay(plan, what_counts(result.actions)).parameters));
    std::int64_t samples = 0;
    for (int d = 0; d < plan.mesh[axis::data]; ++d)
      for (int m = 0; m < updates * every; ++m)
        samples += plan.samples_of(d, m);
    CHECK(result.updated_samples == samples);
    CHECK(result.samples == samples);
    CHECK(std::ssize(result.loss) == updates);
  }
}

TEST_CASE("an interrupted run whose times are modelled knows when its losses came",
          "[interruption]") {
  auto plan = tiny::training_on({}, pipedream(), {4, 4, 50}, clock_kind::virtual_time);
  for (const int works : {30, 80, 130}) {
    plan.observed.model_times = false;
    const auto was = interrupted_after(plan, works);
    plan.observed.model_times = true;
    const auto modelled = interrupted_after(plan, works);
    REQUIRE_FALSE(was.loss.empty());
    CHECK(was.loss_times.size() == was.loss.size());
    CHECK(modelled.loss_times.size() == modelled.loss.size());
  }
}

TEST_CASE("an interrupted run without common updates ends when all that came in is "
          "through",
          "[interruption]") {
  const auto& [schedule, exchange] =
    GENERATE(table<const char*, const char*>({{"ampnet", "none"},
                                              {"ampnet", "server:async"},
                                              {"ampnet", "hogwild"},
                                              {"1f1b", "server:async"},
                                              {"pipedream", "server:staleness=1"},
                                              {"gpipe", "hogwild"},
                                              {"chimera", "server:staleness=0"}}));
  const bool alone = exchange == std::string{"none"};
  auto plan =
    tiny::training_on({.data = alone ? 1 : 3, .exchange = alone ? "ring" : exchange},
                      *find_schedule(schedule), {4, 4, 50}, clock_kind::virtual_time);
  if (!alone)
    plan.machine.slowdowns = {1, 1.5, 2.5};
  for (int works = 1; works < 400; works += 400 / moments) {
    INFO(schedule << " by " << exchange << ", interrupted at work " << works);
    const auto result = interrupted_after(plan, works);
    const auto again = replay(plan, what_counts(result.actions), result.accesses);
    CHECK((result.parameters == again.parameters));
    if (plan.sch.local_rule()) {
      CHECK(result.updated_samples == samples_backwarded(plan, result.actions));
      if (alone)
        CHECK(result.updated_samples == result.samples);
    }
  }
}

TEST_CASE("in real time too all stages end after one update", "[interruption]") {
  const auto name = GENERATE("naive", "gpipe", "1f1b", "chimera", "2bw", "pipedream");
  for (std::int64_t sample = 8; sample < 200; sample += 48) {
    auto plan = tiny::training_of(*find_schedule(name), {4, 4, 100'000},
                                  clock_kind::real, tiny::gpt(4));
    plan.work->optimizer.clip = name == std::string{"pipedream"} ? 0 : 1;
    std::atomic<bool> interrupted = false;
    plan.work->data = std::make_shared<tiny::brittle_data>(plan.work->data, sample,
                                                           [&] { interrupted = true; });
    const auto result = perform(plan, {.interrupted = &interrupted});
    INFO(name << ", interrupted at sample " << sample << ": " << result.failure);
    REQUIRE(result.outcome == ending::interrupted);
    CHECK(std::ranges::count(result.updates, result.updates.front()) == 4);
    CHECK((result.parameters == replay(plan, what_counts(result.actions)).parameters));
  }
}

TEST_CASE("a rank that waits for an evaluation does not keep a run from ending",
          "[interruption]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  auto plan = tiny::training_of(two_bw(), {4, 4, 1000}, clock, tiny::gpt(4));
  std::atomic<bool> interrupted = false;
  plan.copies.evaluate_every = 1;
  const auto end_at_3 = [&](int batches, const std::vector<const float*>&) {
    interrupted = interrupted || batches >= 3;
  };
  const auto result =
    perform(plan, {.evaluate = end_at_3, .interrupted = &interrupted});
  REQUIRE(result.outcome == ending::interrupted);
  CHECK((result.parameters == after(plan, result.updates.front()).parameters));
}

} // namespace troupe::interruption_test
