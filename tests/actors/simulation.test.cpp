// SPDX-License-Identifier: BSD-3-Clause
// Simulations: the actors in virtual time against the published numbers and against
// programs laid out without actors.

#include "actors/proof/clock_validation.hpp"
#include "actors/proof/record_validation.hpp"
#include "schedules/prediction.hpp"
#include "schedules/program.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <cmath>
#include <numeric>

namespace troupe::simulation_test {

namespace {

constexpr nanoseconds ms = 1'000'000;

#ifdef TROUPE_SANITIZED // forty times slower: a size of each kind
const std::vector stage_counts{1, 4}, microbatch_counts{4, 5}, step_counts{3},
  rank_counts{4}, batch_sizes{4, 12}, odd_stage_counts{5}, odd_batch_sizes{2, 6};
#else
const std::vector stage_counts{1, 2, 3, 4, 6, 8}, microbatch_counts{1, 2, 4, 5, 8, 16},
  step_counts{1, 3}, rank_counts{1, 2, 4, 6, 8}, batch_sizes{1, 4, 6, 12, 32},
  odd_stage_counts{1, 2, 5, 16}, odd_batch_sizes{1, 2, 6, 33};
#endif

run_result simulated(const run_plan& plan) {
  REQUIRE(validation_error(plan).empty());
  auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  return result;
}

/// Checks the actors' timeline, action by action, against the prediction.
void check_prediction(const schedule& sch, shape dims, double f, double b, double u,
                      nanoseconds latency) {
  auto plan = tiny::simulation(sch, dims, f, b, u);
  plan.machine.links.inside.latency = latency;
  const auto ran = simulated(plan).actions;
  const auto table = tiny::costs(f, b, u);
  const auto expected = predict(
    sch, dims, [&](const action& a) { return table.duration_of(a.op, a.stage); },
    [&](const action&) { return latency; });
  INFO(sch.name << " " << dims.stages << "x" << dims.microbatches << "x" << dims.steps);
  INFO("actors\n"
       << draw(timeline_of(ran), 100) << "prediction\n"
       << draw(expected, 100));
  bool same = true;
  for (std::size_t r = 0; r < ran.size(); ++r) {
    same = same && ran[r].size() == expected[r].size();
    for (std::size_t i = 0; same && i < ran[r].size(); ++i)
      same = ran[r][i].action == expected[r][i].action
             && ran[r][i].start == expected[r][i].start
             && ran[r][i].end == expected[r][i].end;
  }
  CHECK(same);
}

} // namespace

TEST_CASE("actors do what the schedule's order predicts, at every size",
          "[simulation]") {
  const auto& entry = GENERATE(from_range(catalog()));
  const auto sch = *find_schedule(entry.name);
  for (const int stages : stage_counts)
    for (const int microbatches : microbatch_counts)
      for (const int steps : step_counts)
        if (const shape dims{stages, microbatches, steps};
            validation_error(sch, dims).empty()) {
          check_prediction(sch, dims, 1, 2, 0, 0);
          check_prediction(sch, dims, 1.25, 1.75, 0.5, 0);
          check_prediction(sch, dims, 1, 2, 0, ms / 4);
        }
}

TEST_CASE("schedules with parameters do what they predict", "[simulation]") {
  for (const int stages : {2, 4, 6}) {
    check_prediction(chimera({.eager = false}), {stages, 6, 3}, 1, 2, 0.25, 0);
    check_prediction(chimera({.eager = false}), {stages, 6, 3}, 2, 1, 0, ms / 2);
  }
  for (const auto& sch : {pipedream(3), pipedream(1, true), ampnet(1, 1), ampnet(3, 2),
                          ampnet(8, 1), ampnet(16, 5)})
    for (const int stages : {1, 2, 4, 7}) {
      check_prediction(sch, {stages, 6, 3}, 1, 2, 0.25, 0);
      check_prediction(sch, {stages, 6, 3}, 2, 1, 0, ms / 2);
    }
}

TEST_CASE("the published makespan and idle time", "[simulation]") {
  const int p = GENERATE(1, 2, 4, 8), m = GENERATE(1, 4, 8, 16);
  for (const auto& sch : {gpipe(), one_f_one_b()}) {
    const auto run = simulated(tiny::simulation(sch, {p, m})).sums;
    CHECK(run.makespan == 3 * (m + p - 1) * ms);
    CHECK(run.idle()
          == std::vector<nanoseconds>(static_cast<std::size_t>(p), 3 * (p - 1) * ms));
    CHECK(std::abs(run.bubble() - (p - 1.0) / (m + p - 1)) < 1e-12);
    CHECK(std::abs(run.bubble_ideal() - (p - 1.0) / m) < 1e-12);
  }
}

TEST_CASE("every batch takes the published time, wherever a paper says one",
          "[simulation]") {
  const int p = GENERATE(from_range(rank_counts)),
            m = GENERATE(from_range(batch_sizes));
  const int steps = GENERATE(from_range(step_counts));
  // I and W, or their sum as B.
  const auto [i, w] =
    GENERATE(std::pair{2, 2}, std::pair{1, 1}, std::pair{3, 1}, std::pair{4, 2});
  const auto f = GENERATE(1, 2);
  int found = 0;
  for (const auto& sch :
       {naive(), gpipe(), one_f_one_b(), chimera(), chimera({.forward_doubling = true}),
        interleaved(2), interleaved(3), looped_bfs(2), zb_h1(), zb_h2(), zb_v(),
        dualpipe(), dualpipev(), hanayo(1), hanayo(2)}) {
    const shape dims{p * sch.where.stages_a_rank, m, steps};
    const auto batch = published::time_of_batch(*rule_of(sch), dims,
                                                {f * ms, (i + w) * ms, i * ms, w * ms});
    if (!batch || !validation_error(sch, dims).empty())
      continue;
    ++found;
    auto plan = tiny::simulation(sch, dims);
    auto costs = tiny::costs(f, i + w);
    costs.by_op[static_cast<std::size_t>(op::input_gradient)] = {i * ms};
    costs.by_op[static_cast<std::size_t>(op::weight_gradient)] = {w * ms};
    plan.machine.cost = costs_from(costs);
    const auto run = simulated(plan).sums;
    INFO(sch.name << " " << p << "x" << m << "x" << steps << ", F=" << f << ",I=" << i
                  << ",W=" << w);
    const auto all = published::times(*batch, steps);
    CHECK(run.makespan == all.makespan);
    CHECK(run.idle()
          == std::vector<nanoseconds>(static_cast<std::size_t>(p), all.idle));
  }
  CHECK(found >= 3);
}

TEST_CASE("what simulated ranks keep books of is what the papers say", "[simulation]") {
  const auto sch =
    GENERATE(naive(), gpipe(), one_f_one_b(), chimera(),
             chimera({.forward_doubling = true}), two_bw(), pipedream(), pipedream(3),
             pipedream(2, true), ampnet(), ampnet(1, 1), ampnet(9, 2));
  const auto by = *rule_of(sch);
  for (const int stages : odd_stage_counts)
    for (const int microbatches : odd_batch_sizes)
      for (const nanoseconds latency : {nanoseconds{0}, ms / 3}) {
        auto plan = tiny::simulation(sch, {stages, microbatches, 3}, 1, 1.75, 0.5);
        plan.machine.links.inside.latency = latency;
        if (!validation_error(plan).empty())
          continue;
        const auto ran = simulated(plan).actions;
        INFO(sch.name << " " << stages << "x" << microbatches);
        CHECK(first_wrong_entry(plan, by, ran).empty());
        if (sch.local_rule())
          CHECK(first_wrong_choice(plan, by, ran).empty());
      }
}

TEST_CASE("1f1b's idle time within each rank's own span", "[simulation]") {
  const auto run = simulated(tiny::simulation(one_f_one_b(), {4, 8})).sums;
  CHECK(run.span_idle == std::vector<nanoseconds>{9 * ms, 6 * ms, 3 * ms, 0});
  CHECK(run.peak_activations == std::vector{4, 3, 2, 1});
}

TEST_CASE("chimera's published numbers", "[simulation]") {
  const auto even = simulated(tiny::simulation(chimera(), {8, 8}, 1, 1)).sums;
  CHECK(even.makespan == 22 * ms);
  CHECK(std::abs(even.bubble() - 3.0 / 11) < 1e-12);
  CHECK(even.peak_activations == std::vector{5, 6, 7, 8, 8, 7, 6, 5});
  CHECK(simulated(tiny::simulation(chimera(), {8, 16}, 1, 2)).sums.makespan == 66 * ms);
}

TEST_CASE("asynchronous schedules have the published versions and staleness",
          "[simulation]") {
  const auto run = [](const schedule& sch) {
    return simulated(tiny::simulation(sch, {4, 8, 4})).sums;
  };
  CHECK(run(pipedream()).weight_versions == std::vector{4, 3, 2, 1});
  CHECK(run(pipedream()).max_staleness == std::vector{3, 2, 1, 0});
  CHECK(run(pipedream(1, true)).weight_versions == std::vector{4, 4, 4, 4});
  CHECK(run(pipedream(1, true)).max_staleness == std::vector{3, 3, 3, 3});
  CHECK(run(two_bw()).weight_versions == std::vector{2, 2, 2, 2});
  CHECK(run(two_bw()).max_staleness == std::vector{1, 1, 1, 1});
  CHECK(run(two_bw()).mean_staleness == std::vector{0.75, 0.75, 0.75, 0.75});
  const auto sums = run(ampnet(5, 2));
  CHECK(sums.weight_versions == std::vector{1, 1, 1, 1});
  for (const int stale : sums.max_staleness)
    CHECK(stale <= 2); // ceil((max_active_keys - 1) / min_update_frequency)
  for (const int held : sums.peak_activations)
    CHECK(held <= 5);
}

TEST_CASE("pipedream that accumulates is stale by floor or ceil of (S-1-s)/K",
          "[simulation]") {
  const int every = GENERATE(1, 2, 3);
  const auto run = simulated(tiny::simulation(pipedream(every), {4, 24, 2})).sums;
  for (int s = 0; s < 4; ++s) {
    const auto i = static_cast<std::size_t>(s);
    CHECK(run.max_staleness[i] == (3 - s + every - 1) / every);
    CHECK(run.mean_staleness[i] <= run.max_staleness[i]);
    CHECK(run.weight_versions[i] == 1 + (3 - s + every - 1) / every);
  }
}

TEST_CASE("costs may differ by stage, and messages take time", "[simulation]") {
  auto plan = tiny::simulation(gpipe(), {2, 1});
  cost_table costs;
  costs.by_op[0] = {1 * ms, 5 * ms};
  costs.by_op[1] = {2 * ms, 7 * ms};
  plan.machine.cost = costs_from(costs);
  CHECK(simulated(plan).sums.makespan == (1 + 5 + 7 + 2) * ms);
  plan.machine.links.inside = {.latency = ms, .bytes_per_second = 1000};
  plan.work.simulated().message = 2;
  CHECK(simulated(plan).sums.makespan == (1 + 3 + 5 + 7 + 3 + 2) * ms);
}

TEST_CASE("activations of one rank share its port", "[simulation]") {
  // Eight activations of 10 MB and eight gradients, each 10 ms at 1 GB/s.
  auto plan = tiny::simulation(gpipe(), {2, 8}, 0, 0);
  plan.machine.links.inside = {.bytes_per_second = 1e9};
  plan.work.simulated().message = 1e7;
  CHECK(simulated(plan).sums.makespan == 160 * ms);
}

TEST_CASE("a published benchmark over a wide-area network", "[simulation]") {
  // ProtocolNanoGPT: 8 stages of 1F1B, 64 microbatches, messages of 16,777,224 bytes
  // over 200 Mbit/s and 50 ms; a step took 100.475 s.
  auto plan = tiny::simulation(one_f_one_b(), {8, 64}, 1.5, 3);
  plan.machine.links.inside = {.latency = 50 * ms, .bytes_per_second = 25e6};
  plan.work.simulated().message = 16'777'224;
  const auto seconds = static_cast<double>(simulated(plan).sums.makespan) * 1e-9;
  INFO(seconds);
  CHECK(std::abs(seconds - 100.475) < 0.03 * 100.475);
}

TEST_CASE("chimera's directions pay for the gradients that they add", "[simulation]") {
  const auto run = [](bool eager) {
    auto plan = tiny::simulation(chimera({.eager = eager}), {4, 8});
    plan.machine.links.inside = {.latency = ms, .bytes_per_second = 1e6};
    plan.work.simulated().gradient = 4e6;
    plan.work.simulated().buckets = 8;
    return simulated(plan);
  };
  const auto lazy = run(false), eager = run(true);
  // Each rank sends 4 MB of gradients, then 4 MB of parameters, at 1 MB/s.
  CHECK(lazy.sums.makespan > 8000 * ms);
  CHECK(lazy.sums.makespan < 8100 * ms);
  for (const auto& result : {lazy, eager}) {
    CHECK(result.bytes_moved[static_cast<std::size_t>(traffic::gradients)]
          == 4 * 4'000'000);
    CHECK(result.bytes_moved[static_cast<std::size_t>(traffic::parameters)]
          == 4 * 4'000'000);
  }
  // Eager buckets go before later activations, which wait for them at the same port.
  CHECK(eager.sums.makespan > lazy.sums.makespan);
}

TEST_CASE("chimera's eager gradients hide behind backwards where ports are idle",
          "[simulation]") {
  const auto makespan = [](bool eager) {
    auto plan = tiny::simulation(chimera({.eager = eager}), {4, 8}, 10, 20);
    plan.machine.links.inside = {.bytes_per_second = 1e9};
    plan.work.simulated().gradient = 1e7; // 10 ms
    plan.work.simulated().buckets = 10;
    return simulated(plan).sums.makespan;
  };
  CHECK(makespan(true) < makespan(false));
}

TEST_CASE("a simulation is the same each time", "[simulation]") {
  const auto a = simulated(tiny::simulation(ampnet(7, 3), {6, 16, 2}, 1.5, 2.25));
  const auto b = simulated(tiny::simulation(ampnet(7, 3), {6, 16, 2}, 1.5, 2.25));
  REQUIRE(a.actions.size() == b.actions.size());
  for (std::size_t r = 0; r < a.actions.size(); ++r) {
    REQUIRE(a.actions[r].size() == b.actions[r].size());
    for (std::size_t i = 0; i < a.actions[r].size(); ++i)
      CHECK((a.actions[r][i].action == b.actions[r][i].action
             && a.actions[r][i].start == b.actions[r][i].start));
  }
  CHECK(a.envelopes == b.envelopes);
}

} // namespace troupe::simulation_test
