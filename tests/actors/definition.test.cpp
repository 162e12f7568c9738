// SPDX-License-Identifier: BSD-3-Clause
// Whole runs compared with the definition in double, at random sizes and options.

#include "models/optimizer_catalog.hpp"
#include "tests/actors/plain_training.hpp"
#include "tests/actors/tiny.hpp"
#include "tests/dice.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <array>
#include <numeric>

namespace troupe::definition_test {

namespace {

#ifdef TROUPE_SANITIZED
constexpr int drawn_runs = 8;
#else
constexpr int drawn_runs = 40;
#endif

/// A schedule, and its published rule for one replica of `share` microbatches a batch.
struct published {
  schedule sch;
  plain::training::rule by;
};

published some_schedule(dice& d, int stages, int share) {
  const std::string name = d.one_of(
    std::array{"naive", "gpipe", "1f1b", "chimera", "2bw", "pipedream", "sync"});
  if (name == "2bw") // W(t+1) = W(t) - lr grad f(W(t-1))
    return {two_bw(),
            {share, [share](int, int k) { return std::max(0, k / share - 1); }}};
  if (name == "pipedream" || name == "sync") {
    const int every = d.number(1, 3);
    const bool sync = name == "sync";
    return {pipedream(every, sync), {every, [=](int stage, int k) {
                                       const int behind =
                                         stages - 1 - (sync ? 0 : stage);
                                       return std::max(0, k - behind) / every;
                                     }}};
  }
  return {*find_schedule(name), {share, [share](int, int k) { return k / share; }}};
}

optimizer_options some_optimizer(dice& d, int samples, bool has_all_gradients) {
  optimizer_options o;
  const auto names = optimizer_names();
  o.name =
    names[static_cast<std::size_t>(d.number(0, static_cast<int>(names.size()) - 1))];
  if (o.name == "nadam" && d.coin())
    o.parameters = {{"momentum_decay", d.real(0, 2)}};
  const bool sgd = o.name == "sgd";
  o.rate = sgd ? d.real(0.05, 0.3) : d.real(0.002, 0.02);
  o.schedule = {d.coin(), d.number(0, samples / 2), d.real(0, 0.3)};
  o.momentum = d.coin() ? d.real(0.3, 0.9) : 0;
  o.beta1 = d.real(0.6, 0.9);
  o.beta2 = d.real(0.8, 0.99);
  o.epsilon = 1e-3; // gradients of 0 are rounding, of which a small one makes steps
  o.weight_decay = d.coin() ? d.real(0.01, 0.3) : 0;
  o.decay_only_matrices = d.coin();
  o.clip = d.coin() ? d.real(0.05, 0.6) : 0;
  o.scope = has_all_gradients && d.coin() ? clip_scope::network : clip_scope::stage;
  return o;
}

const model_options model{"gpt", 4, 8, 4, 4, 11};

/// Microbatches of other sizes, or of shorter sequences, or both.
void make_uneven(dice& d, run_plan& plan) {
  uneven_microbatches how;
  const int microbatches = plan.mesh[axis::data] * plan.dims.microbatches;
  if (d.coin()) {
    for (int k = 0; k < microbatches; ++k)
      how.samples.push_back(d.number(1, 4));
    plan.work->batch =
      std::accumulate(how.samples.begin(), how.samples.end(), std::int64_t{0});
  }
  for (int k = d.coin() ? d.number(1, microbatches) : 0; k > 0; --k)
    how.lengths.push_back(plan.sequence_parallel ? 4 : d.number(1, 4));
  plan.uneven = std::make_shared<const uneven_microbatches>(std::move(how));
}

run_plan some_run(dice& d, published& by) {
  int stages = d.number(1, 4), share = d.number(1, 5);
  do {
    stages = d.number(1, 4);
    share = d.number(1, 5);
    by = some_schedule(d, stages, share);
  } while (!validation_error(by.sch, {stages, share, 1}).empty());
  const auto clock = d.coin() ? clock_kind::real : clock_kind::virtual_time;
  auto plan = tiny::training_of(by.sch, {stages, share, d.number(2, 4)}, clock, model);
  plan.mesh[axis::data] = d.number(1, 3);
  plan.exchange = find_exchange(d.one_of(std::array{
    "naive", "tree", "ring", "halving", "server", "zero1", "zero2", "zero3"}));
  plan.mesh[axis::tensor] = d.one_of(std::array{1, 1, 2, 4});
  plan.sequence_parallel = plan.mesh[axis::tensor] > 1 && d.coin();
  if (plan.mesh[axis::tensor] > 1)
    plan.work->shards =
      *make_shards<float>(model, plan.mesh[axis::tensor], plan.sequence_parallel);
  plan.work->batch =
    plan.mesh[axis::data] * share + d.number(0, 2 * plan.mesh[axis::data] * share);
  if (d.coin())
    make_uneven(d, plan);
  plan.work->optimizer =
    some_optimizer(d, static_cast<int>(plan.work->batch) * plan.dims.steps,
                   update_size(by.sch, plan.dims) == share);
  return plan;
}

/// The distance of values from exact values, relative to the distance that the exact
/// values have moved.
double apart(const std::vector<float>& values, const std::vector<double>& exact,
             const std::vector<double>& before) {
  double difference = 0, moved = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(static_cast<double>(values[i]) - exact[i], 2);
    moved += std::pow(exact[i] - before[i], 2);
  }
  return std::sqrt(difference / moved);
}

} // namespace

TEST_CASE("runs train what their definition says in double", "[definition]") {
  const int seed = GENERATE(range(0, drawn_runs));
  dice d{static_cast<unsigned>(seed)};
  published by;
  const auto plan = some_run(d, by);
  CAPTURE(seed, plan.sch.name, plan.mesh[axis::data], plan.dims.stages,
          plan.mesh[axis::tensor], plan.sequence_parallel, plan.dims.microbatches,
          plan.dims.steps, plan.exchange->name, plan.work->batch);
  REQUIRE(validation_error(plan).empty());
  const auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  const auto whole = *make_network<double>(model);
  const plain::training exact{plan, whole, by.by};
  REQUIRE(result.loss.size() == exact.loss.size());
  for (std::size_t i = 0; i < exact.loss.size(); ++i)
    CHECK(std::abs(result.loss[i] - exact.loss[i]) < 1e-6);
  for (std::size_t l = 0; l < result.parameters.size(); ++l)
    CHECK(apart(result.parameters[l], exact.versions.back()[l], exact.versions[0][l])
          < 1e-4);
}

// An update may wait for others while its stage goes on with forwards.
TEST_CASE("evaluations see the weights that the definition has after their batch",
          "[definition]") {
  const int seed = GENERATE(range(1000, 1000 + drawn_runs / 2));
  dice d{static_cast<unsigned>(seed)};
  published by;
  auto plan = some_run(d, by);
  CAPTURE(seed, plan.sch.name, plan.mesh[axis::data], plan.dims.stages,
          plan.mesh[axis::tensor]);
  plan.machine.links.inside = {.latency = 1'000'000, .bytes_per_second = 1e6};
  plan.copies.evaluate_every = 1;
  std::vector<std::vector<std::vector<float>>> seen;
  const auto see = [&](int batches, const std::vector<const float*>& parameters) {
    CHECK(batches == static_cast<int>(seen.size()) + 1);
    auto& copy = seen.emplace_back();
    for (std::size_t l = 0; l < parameters.size(); ++l)
      copy.emplace_back(parameters[l],
                        parameters[l] + plan.work->whole.layers[l]->bucket());
  };
  const auto result = perform(plan, {.evaluate = see});
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  REQUIRE(static_cast<int>(seen.size()) == plan.dims.steps);
  const auto whole = *make_network<double>(model);
  const plain::training exact{plan, whole, by.by};
  for (std::size_t t = 1; t <= seen.size(); ++t) {
    const auto backwards = t * static_cast<std::size_t>(plan.dims.microbatches);
    const auto updates = t == seen.size()
                           ? exact.versions.size() - 1
                           : backwards / static_cast<std::size_t>(by.by.every);
    for (std::size_t l = 0; l < seen[t - 1].size() && updates > 0; ++l)
      CHECK(apart(seen[t - 1][l], exact.versions[updates][l], exact.versions[0][l])
            < 1e-4);
  }
}

// With gradients clipped to nothing, only decay is left: w -= rate * decay * w.
TEST_CASE("weights that only decay tell the rates of all updates, whoever makes them",
          "[definition]") {
  const std::string exchange =
    GENERATE("ring", "server", "zero1", "zero3", "server:async", "server:staleness=0",
             "server:staleness=2", "hogwild");
  const std::string name = GENERATE("1f1b", "chimera", "pipedream", "2bw", "ampnet");
  constexpr int data = 2, share = 4, steps = 3, samples = 3; // of a microbatch
  const auto sch = name == "ampnet" ? ampnet(4, 2) : *find_schedule(name);
  auto plan = tiny::training_of(sch, {2, share, steps}, clock_kind::virtual_time);
  plan.mesh[axis::data] = data;
  plan.exchange = find_exchange(exchange);
  plan.work->batch = data * share * samples;
  if (!validation_error(plan).empty())
    return; // ampnet has no common updates
  auto& o = plan.work->optimizer;
  o = {.name = "sgd",
       .rate = 0.5,
       .schedule = {.cosine = true, .warmup = 20, .floor = 0.1},
       .weight_decay = 0.2,
       .clip = 1e-20,
       .scope = clip_scope::stage};
  const bool apart = plan.exchange->updates != update_by::all_replicas;
  const int of_one = plan.sch.update_every > 0 ? plan.sch.update_every : share;
  const int covered = samples * of_one * (apart ? 1 : data);
  const int total = samples * share * data * steps;
  double left = 1;
  for (int first = 0; first < total; first += covered)
    left *= 1 - o.weight_decay * plain::rate_of(o, first, first + covered, total);
  const auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  double most = 0;
  for (std::size_t l = 0; l < result.parameters.size(); ++l) {
    const auto& after = result.parameters[l];
    std::vector<float> before(after.size());
    plan.work->weights(l, before.data());
    for (std::size_t i = 0; i < after.size(); ++i)
      if (before[i] != 0)
        most =
          std::max(most, std::abs(static_cast<double>(after[i] / before[i]) - left));
  }
  INFO(name << " by " << exchange);
  CHECK(most < 1e-5);
}

} // namespace troupe::definition_test
