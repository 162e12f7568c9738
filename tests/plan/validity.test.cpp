// SPDX-License-Identifier: BSD-3-Clause
// Rules of validity: each rule alone, and random plans that break several.

#include "plan/validity.hpp"

#include "tests/dice.hpp"
#include "tests/plan/tiny_plans.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace troupe::validity_test {

namespace {

/// A change of a valid plan, and the rules that the changed plan breaks.
struct mistake {
  std::set<std::string> rules;
  std::function<void(run_plan&)> make;
};

std::set<std::string> names_of(const std::vector<broken_rule>& broken) {
  std::set<std::string> result;
  for (const auto& rule : broken)
    result.insert(rule.name);
  return result;
}

/// A training of a tiny GPT: four data replicas of two stages.
run_plan valid_plan(const std::string& exchange = "ring", bool tied = false) {
  return tiny::training_on({.data = 4, .exchange = exchange, .tied = tied},
                           one_f_one_b(), {2, 4, 2}, clock_kind::virtual_time);
}

void set_sizes(run_plan& plan, std::vector<std::int64_t> samples,
               std::vector<std::int64_t> lengths) {
  auto both = plan.uneven ? *plan.uneven : uneven_microbatches{};
  if (!samples.empty())
    both.samples = std::move(samples);
  if (!lengths.empty())
    both.lengths = std::move(lengths);
  plan.uneven = std::make_shared<uneven_microbatches>(both);
}

/// Mistakes of the plan above, no two of which concern the same fields.
const std::vector<mistake>& mistakes() {
  static const std::vector<mistake> all{
    {{"sizes_of_expert_groups"}, [](run_plan& plan) { plan.expert = 3; }},
    {{"blocks_of_recomputation"}, [](run_plan& plan) { plan.recomputed_units = -1; }},
    {{"lengths_within_the_model"},
     [](run_plan& plan) {
       set_sizes(plan, {}, {4, 5});
     }},
    {{"a_sample_in_each_microbatch", "sizes_add_up_to_the_batch"},
     [](run_plan& plan) { set_sizes(plan, std::vector<std::int64_t>(16, 0), {}); }},
    {{"samples_of_a_batch"},
     [](run_plan& plan) { plan.work->batch = std::int64_t{1} << 31; }},
    {{"kept_steps_of_whole_state"},
     [](run_plan& plan) {
       plan.keep_steps = true;
       plan.exchange = find_exchange("zero1");
     }},
    {{"single_updates_without_shards"},
     [](run_plan& plan) {
       plan.tensor = 2;
       plan.exchange = find_exchange("server:async");
     }},
  };
  return all;
}

} // namespace

TEST_CASE("a valid plan breaks no rule", "[validity]") {
  CHECK(names_of(broken_rules(valid_plan())).empty());
  CHECK(validation_error(valid_plan()).empty());
  CHECK(broken_rules(tiny::simulation(one_f_one_b(), {4, 8})).empty());
}

TEST_CASE("a plan that breaks several rules is told all of them, each with an option",
          "[validity]") {
  dice random{11};
  int several = 0;
  for (int round = 0; round < 200; ++round) {
    auto plan = valid_plan();
    std::set<std::string> expected;
    bool changes_exchange = false;
    for (const auto& m : mistakes()) {
      const bool is_of_exchange = m.rules.contains("kept_steps_of_whole_state")
                                  || m.rules.contains("single_updates_without_shards");
      if (random.number(0, 2) > 0 || (is_of_exchange && changes_exchange))
        continue;
      changes_exchange = changes_exchange || is_of_exchange;
      m.make(plan);
      expected.insert(m.rules.begin(), m.rules.end());
    }
    // An expert group that does not divide the replicas has no replica that keeps the
    // same state; a batch that is too large is not the sum of the sizes.
    const auto broken = broken_rules(plan);
    const auto names = names_of(broken);
    for (const auto& name : expected) {
      INFO(name);
      const bool hidden = name == "kept_steps_of_whole_state" && plan.expert == 3;
      CHECK((hidden || names.contains(name)));
    }
    CHECK(broken.empty() == expected.empty());
    several += broken.size() > 1;
    for (const auto& rule : broken) {
      INFO(rule.name << ": " << rule.sentence);
      CHECK_FALSE(rule.sentence.empty());
      CHECK_FALSE(rule.options.empty());
      CHECK(std::ranges::all_of(
        rule.options, [](const std::string& o) { return o.starts_with("--"); }));
    }
    CHECK(validation_error(plan) == (broken.empty() ? "" : broken.front().sentence));
  }
  CHECK(several > 50);
}

TEST_CASE("a rule that needs valid sizes is left out where sizes are not valid",
          "[validity]") {
  auto plan = valid_plan("ring", true);
  plan.dims.stages = 0;
  plan.tensor = 2;
  plan.exchange = find_exchange("server:async");
  const auto names = names_of(broken_rules(plan));
  CHECK(names.contains("sizes_of_schedule"));
  CHECK(names.contains("single_updates_without_shards"));
  CHECK(names.contains("tied_ends_of_all_replicas"));
  CHECK_FALSE(names.contains("tied_ends_update_together"));
  CHECK_FALSE(names.contains("memory_of_training"));
}

TEST_CASE("asynchronous schedules break rules of ties, checkpoints and clipping",
          "[validity]") {
  auto plan = tiny::training_on({.data = 2, .tied = true}, pipedream(), {2, 4, 2},
                                clock_kind::virtual_time);
  plan.work->optimizer.clip = 1;
  plan.checkpoint_every = 1;
  const auto names = names_of(broken_rules(plan));
  CHECK(names
        == std::set<std::string>{"tied_ends_update_together",
                                 "clipping_of_whole_updates",
                                 "checkpoints_of_tied_versions"});
}

TEST_CASE("experts break rules of shards, shares and single updates", "[validity]") {
  const auto broken = [](const std::string& exchange, int tensor) {
    auto plan =
      tiny::training_on({.data = 4, .expert = 2, .exchange = exchange, .experts = true},
                        one_f_one_b(), {2, 4, 2}, clock_kind::virtual_time);
    plan.tensor = tensor;
    return names_of(broken_rules(plan));
  };
  using names = std::set<std::string>;
  CHECK(broken("ring", 1) == names{});
  CHECK(broken("zero3", 2)
        == names{"experts_without_shards", "experts_have_whole_gradients"});
  CHECK(broken("hogwild", 1) == names{"experts_update_together"});
}

} // namespace troupe::validity_test
