// SPDX-License-Identifier: BSD-3-Clause
// Experts: actors that stages send rows to, on one rank or spread over several.

#include "actors/experts/expert_core.hpp"
#include "actors/meetings/bucket_meeting.hpp"
#include "actors/proof/proof.hpp"
#include "actors/proof/replica_sums.hpp"
#include "plan/layout.hpp"
#include "plan/sharding.hpp"
#include "plan/stage_buckets.hpp"
#include "plan/stage_pools.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/actors/written_port.hpp"
#include "tests/dice.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace troupe::experts_test {

using Catch::Matchers::ContainsSubstring;

namespace {

model_options moe(expert_options experts, std::int64_t layers = 4) {
  return {"moe", layers, 16, 2, 4, 11, experts};
}

run_plan with_experts(const schedule& sch, shape dims, clock_kind clock,
                      const expert_options& experts, int data = 1, int expert = 1,
                      const std::string& exchange = "ring") {
  const auto model = moe(experts);
  auto plan = tiny::training_of(sch, dims, clock, model);
  plan.mesh[axis::data] = data;
  plan.mesh[axis::expert] = expert;
  plan.exchange = find_exchange(exchange);
  plan.work->batch = 2 * data * dims.microbatches + 1;
  plan.work->shards = {make_without_experts<float>(model)};
  plan.work->experts = experts;
  plan.work->optimizer = {.name = "sgd", .rate = 0.1};
  return plan;
}

run_result check_proofs(run_plan plan) {
  keep_for_proofs(plan);
  INFO(validation_error(plan));
  REQUIRE(validation_error(plan).empty());
  auto result = perform(plan);
  INFO(plan.sch.name << " " << plan.mesh[axis::data] << "x" << plan.dims.stages
                     << ", expert " << plan.mesh[axis::expert] << ": "
                     << result.failure);
  REQUIRE(result.outcome == ending::finished);
  CHECK(result.reserved_bytes == bytes_needed(plan));
  for (const auto& p : prove(plan, result)) {
    INFO(p.name << ": " << p.detail);
    CHECK(!p.fails());
  }
  return result;
}

} // namespace

TEST_CASE("experts train what one device would", "[experts]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto* const name =
    GENERATE("naive", "gpipe", "1f1b", "chimera", "2bw", "pipedream", "ampnet");
  const expert_options experts{.count = 4, .capacity = 1, .noise = 0.5};
  const auto result =
    check_proofs(with_experts(*find_schedule(name), {2, 4, 3}, clock, experts));
  CHECK(result.late_allocations == 0);
}

TEST_CASE("experts of several layers of a stage train what one device would",
          "[experts]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  check_proofs(with_experts(*find_schedule("gpipe"), {1, 4, 3}, clock, {.count = 6}));
  // Three of each expert, whose gradients are summed; most experts get no rows.
  check_proofs(with_experts(*find_schedule("gpipe"), {1, 2, 3}, clock, {.count = 24}, 6,
                            2, "tree"));
}

TEST_CASE("experts on several ranks train what one device would", "[experts]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto* const name = GENERATE("1f1b", "chimera", "pipedream");
#ifdef TROUPE_SANITIZED
  const auto [data, expert] = std::pair{4, 2};
#else
  const auto [data, expert] =
    GENERATE(std::pair{2, 1}, std::pair{2, 2}, std::pair{4, 2}, std::pair{4, 4});
#endif
  const expert_options experts{.count = 4, .chosen = 2, .capacity = 1, .shared = true};
  auto plan =
    with_experts(*find_schedule(name), {2, 4, 3}, clock, experts, data, expert);
  plan.machine.links.inside = {.latency = 100'000, .bytes_per_second = 1e6};
  const auto result = check_proofs(plan);
  CHECK(result.late_allocations == 0);
  CHECK((result.bytes_moved[static_cast<std::size_t>(traffic::experts)] > 0)
        == (expert > 1));
}

TEST_CASE("experts at home are summed in buckets of their own, by any exchange",
          "[experts]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const std::string exchange = GENERATE("ring", "zero1", "server");
#ifdef TROUPE_SANITIZED
  const int data = 3;
#else
  const int data = GENERATE(3, 4);
#endif
  auto plan =
    with_experts(*find_schedule("1f1b"), {1, 2, 3}, clock,
                 {.count = 3, .chosen = 2, .shared = true}, data, 1, exchange);
  plan.work->optimizer = {.rate = 0.01, .weight_decay = 0.1};
  plan.work->optimizer.clip = GENERATE(0.0, 0.05);
  check_proofs(plan);
}

TEST_CASE("experts count in the one norm by which gradients are clipped", "[experts]") {
  const auto scope = GENERATE(clip_scope::network, clip_scope::stage);
  const auto [expert, exchange] = GENERATE(std::pair{1, "tree"}, std::pair{1, "zero1"},
                                           std::pair{2, "ring"}, std::pair{2, "zero1"});
  auto plan = with_experts(*find_schedule("1f1b"), {2, 4, 3}, clock_kind::virtual_time,
                           {.count = 4}, 2, expert, exchange);
  plan.work->optimizer.clip = 0.05;
  plan.work->optimizer.scope = scope;
  check_proofs(plan);
}

TEST_CASE("experts on several ranks go with exchanges that share out optimizer state",
          "[experts]") {
  const auto* const name = GENERATE("gpipe", "1f1b", "chimera", "2bw", "pipedream");
  const std::string exchange = GENERATE("zero1", "server");
#ifdef TROUPE_SANITIZED
  const auto [data, expert] = std::pair{4, 2};
#else
  const auto [data, expert] =
    GENERATE(std::pair{2, 2}, std::pair{4, 2}, std::pair{6, 2});
#endif
  const auto sch = *find_schedule(name);
  auto plan =
    with_experts(sch, {2, 4, 3}, GENERATE(from_range(tiny::clocks())),
                 {.count = 4, .chosen = 2, .shared = true}, data, expert, exchange);
#ifdef TROUPE_SANITIZED
  const bool adam = true;
#else
  const bool adam = GENERATE(false, true);
#endif
  if (adam)
    plan.work->optimizer = {.rate = 0.01, .weight_decay = 0.1};
  else
    plan.work->optimizer.momentum = 0.9;
  plan.work->optimizer.clip = GENERATE(0.0, 0.05);
  if (sch.asynchronous() && sch.name != "2bw")
    plan.work->optimizer.scope = clip_scope::stage;
  const auto result = check_proofs(plan);
  CHECK(result.late_allocations == 0);
}

TEST_CASE("to share out the optimizer state of spread experts changes no bit",
          "[experts]") {
  const auto [whole, shared] =
    GENERATE(std::pair{"ring", "zero1"}, std::pair{"naive", "server"});
  const auto parameters_by = [](const std::string& exchange) {
    auto plan =
      with_experts(*find_schedule("1f1b"), {2, 4, 3}, clock_kind::virtual_time,
                   {.count = 4, .chosen = 2}, 6, 2, exchange);
    plan.work->optimizer.momentum = 0.9;
    return perform(plan).parameters;
  };
  CHECK((parameters_by(whole) == parameters_by(shared)));
}

TEST_CASE("a norm goes through data replicas and their buckets as a plain loop does",
          "[experts]") {
  const auto [data, expert, exchange] = GENERATE(
    std::tuple{2, 1, "zero1"}, std::tuple{2, 2, "ring"}, std::tuple{4, 2, "zero1"});
  auto plan = with_experts(*find_schedule("gpipe"), {1, 4, 1}, clock_kind::virtual_time,
                           {.count = 4}, data, expert, exchange);
  plan.work->optimizer.clip = 1;
  dice d{5};
  const auto& layers = plan.work->whole.layers;
  std::vector<std::vector<float>> gradients;
  for (const auto& l : layers)
    for (auto& x : gradients.emplace_back(static_cast<std::size_t>(l->bucket())))
      x = d.normal();
  std::vector<double> expected;
  for (const auto& where : norm_group(plan, {})) {
    std::vector<std::vector<float>> held;
    for (const auto& bucket : layer_buckets(plan, where)) {
      auto& values =
        held.emplace_back(static_cast<std::size_t>(bucket.owner->bucket()));
      extract_shard(*layers[bucket.of_layer], *bucket.owner,
                    gradients[bucket.of_layer].data(), values.data());
    }
    stream on;
    const bool is_copy = where.data > 0 && plan.exchange->name == "ring";
    for (const double part :
         squares_of(parts_of(layers_of(plan, where), shares_of(plan, where)),
                    readable(held), on, is_copy))
      expected.push_back(part);
  }
  stream on;
  CHECK(gradient_buckets_of(plan, 0).squares(readable(gradients), on) == expected);
}

TEST_CASE("every choice of an expert is counted, taken or dropped", "[experts]") {
  const int data = GENERATE(1, 2);
  auto sch = gpipe(); // recomputation counts once
  sch.recomputes = GENERATE(recomputation::none, recomputation::late);
  const auto result =
    check_proofs(with_experts(sch, {2, 4, 3}, clock_kind::virtual_time,
                              {.count = 4, .chosen = 2, .capacity = 0.5}, data, data));
  REQUIRE(result.loads.by_layer.size() == 2); // of the blocks 1 and 3
  for (const auto& [layer, steps] : result.loads.by_layer) {
    REQUIRE(steps.size() == 3);
    for (const auto& step : steps) {
      const auto taken = std::accumulate(step.rows.begin(), step.rows.end(), 0LL);
      CHECK(step.dropped > 0);
      // 8 * data + 1 samples of 4 tokens, each of which chooses two.
      CHECK(taken + step.dropped == (8 * data + 1) * 4 * 2);
    }
  }
}

TEST_CASE("with room enough no choice is dropped", "[experts]") {
  const auto result = check_proofs(with_experts(*find_schedule("gpipe"), {2, 4, 3},
                                                clock_kind::virtual_time,
                                                {.count = 4, .capacity = 4}, 2, 2));
  for (const auto& [layer, steps] : result.loads.by_layer)
    for (const auto& step : steps)
      CHECK(step.dropped == 0);
}

TEST_CASE("two runs of experts give the same bits", "[experts]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto plan =
    with_experts(*find_schedule("1f1b"), {2, 4, 3}, clock, {.count = 4}, 2, 2);
  const auto a = perform(plan), b = perform(plan);
  CHECK((a.parameters == b.parameters));
  CHECK((a.loss == b.loss));
}

TEST_CASE("evaluations see the experts of all ranks", "[experts]") {
  const int expert = GENERATE(1, 2);
  auto plan = with_experts(*find_schedule("1f1b"), {2, 4, 3}, clock_kind::virtual_time,
                           {.count = 4}, 2, expert);
  run_result result;
  const auto last = tiny::last_evaluated(plan, result);
  REQUIRE(result.outcome == ending::finished);
  CHECK((last == result.parameters));
}

TEST_CASE("an action takes as long as its rows at home and with experts", "[experts]") {
  // One expert that has all rows. The stage and the expert share the forward's 12 ms
  // and the backward's 24 ms, and on one rank no message takes time.
  auto plan = with_experts(*find_schedule("gpipe"), {1, 1, 1}, clock_kind::virtual_time,
                           {.count = 1, .capacity = 1});
  plan.machine.cost = costs_from(tiny::costs(12, 24));
  const auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  CHECK(std::abs(result.sums.makespan - 36'000'000) < 10); // nanoseconds
  CHECK(result.sums.busy.front() == result.sums.makespan);
}

TEST_CASE("experts cost what their rows are of a shorter microbatch", "[experts]") {
  auto plan = with_experts(gpipe(), {1, 2, 1}, clock_kind::virtual_time,
                           {.count = 1, .capacity = 1});
  plan.work->batch = 6;
  plan.uneven = std::make_shared<const uneven_microbatches>(
    uneven_microbatches{.samples = {4, 2}, .lengths = {4, 2}});
  plan.machine.cost = costs_from(tiny::costs(12, 24));
  const auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  // The second expert has 4 of 16 tokens.
  CHECK(std::abs(result.sums.makespan - 36'000'000 * 5 / 4) < 100);
}

TEST_CASE("experts have their share of an input gradient and of a weight gradient",
          "[experts]") {
  auto plan = with_experts(zb_h1(), {1, 1, 1}, clock_kind::virtual_time,
                           {.count = 1, .capacity = 1});
  plan.machine.cost = costs_from(tiny::costs(12, 24));
  const auto result = perform(plan);
  REQUIRE(result.outcome == ending::finished);
  std::map<op, nanoseconds> took, took_by_experts;
  for (const auto& s : result.actions.front()) {
    took[s.action.op] += s.end - s.start;
    took_by_experts[s.action.op] += s.expert >= 0 ? s.end - s.start : 0;
  }
  for (const op what : {op::forward, op::input_gradient, op::weight_gradient}) {
    CHECK(std::abs(took[what] - 12'000'000) < 10); // nanoseconds
    CHECK(took_by_experts[what] == took_by_experts[op::forward]);
  }
  CHECK(took_by_experts[op::forward] > 1'000'000);
}

TEST_CASE("simulated rows take their way to experts and back", "[experts]") {
  // The experts take a third of an action; half of the rows go to the other rank.
  const auto makespan_ms = [](int expert, double bytes) {
    auto plan = tiny::simulation(*find_schedule("gpipe"), {1, 1, 1}, 12, 24);
    plan.mesh[axis::data] = 2;
    plan.mesh[axis::expert] = expert;
    plan.exchange = find_exchange("ring");
    plan.machine.links.inside = {.latency = 100'000, .bytes_per_second = 1e9};
    plan.work.simulated().experts = bytes;
    const auto result = perform(plan);
    REQUIRE(result.outcome == ending::finished);
    return static_cast<double>(result.sums.makespan) * 1e-6;
  };
  const double apart = makespan_ms(1, 2e6);
  CHECK(std::abs(makespan_ms(2, 2e6) - (apart + 4 * (0.1 + 1))) < 1e-3);
}

TEST_CASE("an expert says whose rows it waits for, and refuses rows of another pass",
          "[experts]") {
  const auto plan = std::make_shared<const run_plan>(with_experts(
    *find_schedule("gpipe"), {2, 4, 1}, clock_kind::virtual_time, {.count = 4}, 2, 2));
  tiny::written_port port;
  expert_core core{plan, {0, 0, 1}, 4, port, std::make_shared<simulated_expert>()};
  const auto take = [&](int microbatch, int source) {
    core.receive(
      {{role::expert, {0, 0, 1}, 4},
       meeting_kind::experts,
       mail::rows_to_expert{{op::forward, 0, 1, microbatch}, source, 3, {}, {}}});
  };
  CHECK(core.explain().input.empty());
  take(2, 0);
  CHECK(port.news().empty());
  CHECK(core.explain().input == "the rows of F2 of stage 1");
  CHECK(core.explain().peer == "stage 1 (replica 1)");
  CHECK_THROWS_WITH(take(3, 0), ContainsSubstring("before"));
  CHECK_THROWS_WITH(take(3, 1), ContainsSubstring("and of"));
}

TEST_CASE("experts' gradients wait for the data replica that has the same",
          "[experts]") {
  const auto plan = with_experts(*find_schedule("gpipe"), {2, 4, 1},
                                 clock_kind::virtual_time, {.count = 4}, 4, 2);
  const position where{1, 0, 1};
  const auto buckets = layer_buckets(plan, where);
  const auto first =
    std::ranges::find_if(buckets, [](const layer_bucket& b) { return b.expert >= 0; });
  bucket_meeting sums{plan, where, exchange_step::sum, nullptr};
  for (const auto& letter : sums.begin(static_cast<int>(first - buckets.begin())))
    CHECK(letter.to.where.data == 3);
  CHECK(sums.waits_for()->peer == plan.optimizer_of({3, 0, 1}));
}

TEST_CASE("experts that cannot be placed are refused with the reason", "[experts]") {
  const auto refusal_of = [](int data, int expert, int count, const char* exchange) {
    return validation_error(with_experts(*find_schedule("gpipe"), {2, 4, 1},
                                         clock_kind::real, {.count = count}, data,
                                         expert, exchange));
  };
  CHECK_THAT(refusal_of(2, 4, 4, "ring"), ContainsSubstring("does not divide data=2"));
  CHECK_THAT(refusal_of(4, 4, 6, "ring"), ContainsSubstring("cannot be spread over 4"));
  CHECK_THAT(refusal_of(2, 1, 4, "zero2"),
             ContainsSubstring("a share of its gradients,")
               && ContainsSubstring("zero1 or server"));
  CHECK_THAT(refusal_of(2, 2, 4, "zero3"),
             ContainsSubstring("a share of its gradients and parameters"));
  CHECK_THAT(refusal_of(2, 2, 4, "server:async"), ContainsSubstring("one by one"));
  CHECK(refusal_of(4, 2, 4, "zero1").empty());
  CHECK(refusal_of(4, 4, 4, "server").empty());
  auto plan = tiny::training_of(*find_schedule("gpipe"), {2, 4, 1}, clock_kind::real);
  plan.mesh[axis::data] = plan.mesh[axis::expert] = 2;
  plan.exchange = find_exchange("ring");
  CHECK_THAT(validation_error(plan), ContainsSubstring("say --model moe"));
}

} // namespace troupe::experts_test
