// SPDX-License-Identifier: BSD-3-Clause
// Resumed runs combined with nodes, checkpoints, evaluations and kept steps.

#include "actors/checkpoints/gathered_state.hpp"
#include "tests/actors/nodes.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <map>
#include <memory>
#include <vector>

namespace troupe::resumed_test {

namespace {

constexpr int steps = 6;

/// The values that a run passes to callbacks, by the batches of the training.
struct observed_run {
  run_result result;
  std::map<int, std::shared_ptr<const training_state>> saved;
  std::vector<int> evaluated;
};

/// Runs a plan on the given number of nodes, each of which has a plan of all steps; 0:
/// in this process.
observed_run observe(const run_plan& plan, int nodes, const run_plan& of_nodes) {
  observed_run seen;
  const run_callbacks told{
    .evaluate = [&](int batches, const auto&) { seen.evaluated.push_back(batches); },
    .save =
      [&](const training_copies& one) {
        seen.saved[one.batches] = std::make_shared<const training_state>(
          whole_of(plan, one, savers::first_holder).value());
      }};
  if (nodes == 0) {
    seen.result = perform(plan, told);
  } else {
    nodes_here there{of_nodes, nodes};
    seen.result = there.perform(plan, told);
  }
  INFO(seen.result.failure);
  REQUIRE(seen.result.outcome == ending::finished);
  return seen;
}

/// Multiples of `every` after `before`, up to the end of the training.
std::vector<int> due(int before, int every) {
  std::vector<int> result;
  for (int batches = before + 1; every > 0 && batches <= steps; ++batches)
    if (batches % every == 0)
      result.push_back(batches);
  return result;
}

struct resumed_run {
  schedule sch;
  int data = 1;
  int before = 1;
  int checkpoint_every = 2;
  int evaluate_every = 2;
  bool keep_steps = false;
};

} // namespace

TEST_CASE("a resumed run has the checkpoints of one that never stopped, on nodes too",
          "[checkpoint][nodes]") {
  const int nodes = GENERATE(0, 2);
  const auto one = GENERATE(
    resumed_run{.sch = pipedream(1), .before = 1, .checkpoint_every = 2},
    resumed_run{
      .sch = two_bw(), .before = 2, .checkpoint_every = 3, .evaluate_every = 3},
    resumed_run{.sch = one_f_one_b(),
                .data = 2,
                .before = 1,
                .checkpoint_every = 4,
                .evaluate_every = 3,
                .keep_steps = true});
  INFO(one.sch.name << " behind " << one.before << " on " << nodes << " nodes");
  auto plan = tiny::training_on({.data = one.data}, one.sch,
                                {one.data == 1 ? 4 : 2, 4, steps}, clock_kind::real);
  plan.work->optimizer.name = "adamw";
  plan.work->optimizer.momentum = 0;
  auto whole = plan;
  whole.copies.checkpoint_every = 1;
  const auto undisturbed = observe(whole, 0, whole);
  const auto& from = undisturbed.saved.at(one.before);
  if (one.sch.name == "pipedream")
    REQUIRE(from->older.size() >= 2); // which differ

  plan.copies.checkpoint_every = one.checkpoint_every;
  plan.copies.evaluate_every = one.evaluate_every;
  plan.copies.keep_steps = one.keep_steps;
  plan.dims.steps -= from->batches;
  resume_from(from, plan);
  REQUIRE(validation_error(plan) == "");
  const auto rest = observe(plan, nodes, whole);

  auto expected = due(one.before, one.checkpoint_every);
  if (expected.back() != steps)
    expected.push_back(steps); // the end is always saved
  std::vector<int> batches;
  for (const auto& [count, saved] : rest.saved) {
    INFO("checkpoint of " << count << " batches");
    batches.push_back(count);
    const auto& other = *undisturbed.saved.at(count);
    CHECK((saved->parameters == other.parameters));
    CHECK((saved->older == other.older));
    CHECK((saved->state == other.state));
    CHECK(saved->updates == other.updates);
  }
  CHECK(batches == expected);
  CHECK(rest.evaluated == due(one.before, one.evaluate_every));
  CHECK((rest.result.parameters == undisturbed.result.parameters));
  CHECK(rest.result.missing_losses == 0);
  const auto& losses = undisturbed.result.loss;
  const auto rest_of_them = std::ssize(losses) * (steps - one.before) / steps;
  CHECK(rest.result.loss
        == std::vector<double>(losses.end() - rest_of_them, losses.end()));
}

} // namespace troupe::resumed_test
