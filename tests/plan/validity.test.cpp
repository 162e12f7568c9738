// SPDX-License-Identifier: BSD-3-Clause
// Rules of validity: each rule with its sentence, and random plans that break several.

#include "plan/validity.hpp"

#include "tests/dice.hpp"
#include "tests/plan/tiny_plans.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::validity_test {

namespace {

using names = std::set<std::string>;
using change = std::function<void(run_plan&)>;

names names_of(const std::vector<broken_rule>& broken) {
  names result;
  for (const auto& rule : broken)
    result.insert(rule.name);
  return result;
}

/// A training on two stages and four microbatches of each data replica.
run_plan training(const tiny::mesh_of_ranks& mesh,
                  const schedule& sch = one_f_one_b()) {
  return tiny::training_on(mesh, sch, {2, 4, 2}, clock_kind::virtual_time);
}

run_plan changed(run_plan plan, const change& make) {
  make(plan);
  return plan;
}

void set_sizes(run_plan& plan, std::vector<std::int64_t> samples,
               std::vector<std::int64_t> lengths = {}) {
  plan.uneven = std::make_shared<uneven_microbatches>(
    uneven_microbatches{std::move(samples), std::move(lengths)});
}

/// A plan, the rules that the plan breaks, and a part of the first rule's sentence.
struct wrong_plan {
  names rules;
  std::string sentence;
  run_plan plan;
};

std::vector<wrong_plan> wrong_plans() {
  const auto user = [](run_plan& plan) {
    plan.user_exchange = [](const exchange_member&) {
      return std::unique_ptr<user_exchange>{};
    };
  };
  const auto checkpoints = [](run_plan& plan) { plan.copies.checkpoint_every = 1; };
  const auto keep_steps = [](run_plan& plan) { plan.copies.keep_steps = true; };
  const auto resumes = [](run_plan& plan) { plan.dims.batches_before = 1; };
  const auto blocks = [](run_plan& plan) {
    plan.sch.recomputes = recomputation::late;
    plan.recomputed_units = 1;
  };
  const auto clip = [](clip_scope scope) -> change {
    return [scope](run_plan& plan) {
      plan.work->optimizer.clip = 1;
      plan.work->optimizer.scope = scope;
    };
  };
  const auto tensor_of_two = [](run_plan& plan) { plan.mesh[axis::tensor] = 2; };
  return {
    {{"mesh_has_ranks"},
     "each axis has at least 1 rank",
     changed(training({}), [](run_plan& plan) { plan.mesh[axis::expert] = 0; })},
    {{"replicas_have_an_exchange"},
     "data replicas need an exchange",
     changed(training({.data = 2}), [](run_plan& plan) { plan.exchange = {}; })},
    {{"sizes_of_schedule"},
     "to keep two weight versions: say --microbatches 4, 2 for each data replica",
     changed(training({.data = 2}, two_bw()),
             [](run_plan& plan) { plan.dims.microbatches = 1; })},
    {{"sizes_of_run"},
     "a run has at most 1,073,741,823 over all data replicas",
     changed(training({.data = 2}), [](run_plan& plan) { plan.dims.steps = 1 << 27; })},
    {{"user_exchange_sums"},
     "a user_exchange needs data replicas that each update all parameters: give "
     "tensor=1, and no other exchange",
     changed(training({.data = 2, .exchange = "zero1"}), user)},
    {{"user_exchange_without_experts"},
     "an expert of moe may serve only some replicas: train gpt",
     changed(training({.data = 2, .experts = true}), user)},
    {{"user_exchange_untied"},
     "a tied matrix has gradients in two stages: train untied",
     changed(training({.data = 2, .tied = true}), user)},
    {{"local_rule_updates_singly"},
     "and data replicas have no common updates: give --mesh data=1, --exchange "
     "server:async or hogwild",
     training({.data = 2}, ampnet())},
    {{"local_rule_without_staleness"},
     "cannot wait for slower replicas, as a bound on staleness demands: give "
     "--exchange server:async or",
     training({.data = 2, .exchange = "server:staleness=1"}, ampnet())},
    {{"single_updates_without_shards"},
     "may update tensor shards of a stage in different orders, and common parameters "
     "would differ: give --mesh tensor=1, or another --exchange",
     training({.data = 2, .tensor = 2, .exchange = "hogwild"})},
    {{"local_rule_without_shards"},
     "and tensor shards could choose differently: give --mesh tensor=1",
     training({.tensor = 2}, ampnet())},
    {{"expert_groups_of_equal_size", "experts_divide"},
     "expert=3 does not divide data=4: change expert= or data= in --mesh, as experts "
     "are spread over groups of equal size",
     changed(training({.data = 4, .experts = true}),
             [](run_plan& plan) { plan.mesh[axis::expert] = 3; })},
    {{"experts_exist"},
     "expert=2 in --mesh spreads experts, which only moe has",
     training({.data = 4, .expert = 2})},
    {{"encoded_experts_have_one_copy"},
     "say --compress none, or expert=4 or expert=1 in --mesh",
     changed(training({.data = 4, .expert = 2, .experts = true}),
             [](run_plan& plan) { plan.exchange->compression = find_codec("bf16"); })},
    {{"experts_divide"},
     "3 experts cannot be spread over 2 data replicas in equal numbers: change "
     "--experts, or expert= in --mesh",
     changed(training({.data = 4, .expert = 2, .experts = true}),
             [](run_plan& plan) { plan.work->experts.count = 3; })},
    {{"experts_without_shards"},
     "a network with experts cannot be cut into tensor shards: give --mesh tensor=1",
     changed(training({.experts = true}), tensor_of_two)},
    {{"experts_have_whole_gradients"},
     "zero3 keeps in each stage only a share of its gradients and parameters, but an "
     "expert",
     training({.data = 2, .exchange = "zero3", .experts = true})},
    {{"experts_update_together"},
     "updates data replicas one by one, but an expert serves several replicas: give an",
     training({.data = 2, .exchange = "hogwild", .experts = true})},
    {{"blocks_of_recomputation"},
     "--recompute blocks= is below 1: a stage recomputes at least 1 block or layer at "
     "once",
     changed(training({}), [](run_plan& plan) { plan.recomputed_units = -1; })},
    {{"blocks_with_whole_gradients"},
     "zero2 gathers and sums layers one after another",
     changed(training({.data = 2, .exchange = "zero2"}), blocks)},
    {{"blocks_of_known_layers"},
     "--recompute blocks= needs the number of a stage's layers: say --cost",
     changed(tiny::simulation(one_f_one_b(), {2, 4}), blocks)},
    {{"a_size_for_each_microbatch", "samples_add_up_to_the_batch"},
     "a batch has 4 microbatches, but 3 sizes: give --microbatch-sizes a size for each "
     "microbatch",
     changed(training({}),
             [](run_plan& plan) {
               set_sizes(plan, {1, 1, 1});
             })},
    {{"a_sample_in_each_microbatch"},
     "--microbatch-sizes has a size below 1: each microbatch has at least 1 sample",
     changed(training({}),
             [](run_plan& plan) {
               set_sizes(plan, {0, 3, 3, 3});
             })},
    {{"at_most_a_length_for_each_microbatch"},
     "a batch has 4 microbatches, but 5 lengths: give --sequence-lengths at most a "
     "length",
     changed(training({}),
             [](run_plan& plan) {
               set_sizes(plan, {}, {4, 4, 4, 4, 4});
             })},
    {{"a_token_in_each_sequence"},
     "--sequence-lengths has a length below 1: a sequence has at least 1 token",
     changed(training({}),
             [](run_plan& plan) {
               set_sizes(plan, {}, {4, 0});
             })},
    {{"samples_add_up_to_the_batch"},
     "adds up to 8 samples, but --batch has 9",
     changed(training({}),
             [](run_plan& plan) {
               set_sizes(plan, {2, 2, 2, 2});
             })},
    {{"lengths_of_sequences"},
     "--sequence-lengths applies only to gpt and moe: say --model gpt or moe, or leave "
     "--sequence-lengths out",
     changed(training({}),
             [](run_plan& plan) {
               plan.work->whole.options.model = "mlp";
               set_sizes(plan, {}, {4});
             })},
    {{"lengths_within_the_model"},
     "a sequence of 5 tokens in --sequence-lengths is longer than --seq: say --seq 5",
     changed(training({}),
             [](run_plan& plan) {
               set_sizes(plan, {}, {4, 5});
             })},
    {{"lengths_of_whole_shards"},
     "give --sequence-lengths that are multiples of tensor=2",
     changed(training({.tensor = 2, .by_sequence = true}),
             [](run_plan& plan) {
               set_sizes(plan, {}, {4, 3});
             })},
    {{"tied_ends_update_together"},
     "'s first and last stage update at different times, and would differ in a tied "
     "matrix",
     training({.tied = true}, pipedream())},
    {{"tied_ends_of_all_replicas"},
     "and the two copies of a tied matrix would differ: give --exchange ring",
     training({.data = 2, .exchange = "hogwild", .tied = true})},
    {{"tied_ends_of_one_norm"},
     "clip=stage would clip the two copies of a tied matrix differently",
     changed(training({.tied = true}), clip(clip_scope::stage))},
    {{"kept_steps_have_replicas"},
     "--keep-steps needs copies of other data replicas: say --mesh data=2",
     changed(training({}), keep_steps)},
    {{"kept_steps_of_whole_state"},
     "under zero1 no two data replicas have the same share",
     changed(training({.data = 2, .exchange = "zero1"}), keep_steps)},
    {{"checkpoints_of_one_network"},
     "and no common network can be saved: leave --checkpoint out",
     changed(training({.data = 2, .exchange = "hogwild"}), checkpoints)},
    {{"checkpoints_of_one_network"},
     "and no common network can be resumed: leave --resume out, or",
     changed(training({.data = 2, .exchange = "server:async"}), resumes)},
    {{"checkpoints_of_one_network"},
     "and no common network can be saved: leave --checkpoint and --resume out, or",
     changed(changed(training({.data = 2, .exchange = "hogwild"}), resumes),
             checkpoints)},
    {{"checkpoints_of_tied_versions", "tied_ends_update_together"},
     "'s first and last stage update at different times",
     changed(training({.tied = true}, pipedream()), checkpoints)},
    {{"checkpoints_after_updates"},
     " updates every 3 microbatches, and batches of 4 can end within an update: say "
     "--checkpoint-every 3 or a multiple",
     changed(training({}, pipedream(3)), checkpoints)},
    {{"samples_for_all_microbatches"},
     "a batch of 3 samples cannot be cut into 4 microbatches",
     changed(training({}), [](run_plan& plan) { plan.work->batch = 3; })},
    {{"samples_of_a_batch"},
     "--batch is too large: a batch has at most 2,147,483,647 samples",
     changed(training({}),
             [](run_plan& plan) { plan.work->batch = std::int64_t{1} << 31; })},
    {{"clipping_of_whole_updates"},
     "clip=stage to clip stage by stage",
     changed(training({}, pipedream()), clip(clip_scope::network))},
  };
}

} // namespace

TEST_CASE("a valid plan breaks no rule", "[validity]") {
  CHECK(names_of(broken_rules(training({.data = 4}))) == names{});
  CHECK(validation_error(training({.data = 4})) == "");
  CHECK(names_of(broken_rules(tiny::simulation(one_f_one_b(), {4, 8}))) == names{});
}

TEST_CASE("each rule refuses the plans that break the rule, in its sentence",
          "[validity]") {
  names seen;
  for (const auto& [rules, sentence, plan] : wrong_plans()) {
    const auto broken = broken_rules(plan);
    INFO(sentence);
    CHECK(names_of(broken) == rules);
    REQUIRE_FALSE(broken.empty());
    INFO(broken.front().sentence);
    CHECK(broken.front().sentence.find(sentence) != std::string::npos);
    CHECK(validation_error(plan) == broken.front().sentence);
    for (const auto& rule : broken) {
      CHECK_FALSE(rule.options.empty());
      CHECK(std::ranges::all_of(rule.options, [](const std::string& option) {
        return option.starts_with("--");
      }));
    }
    seen.insert(rules.begin(), rules.end());
  }
  CHECK(seen.size() == 40); // all but programs, GPUs and memory
}

TEST_CASE("a plan that breaks several rules is told all of them", "[validity]") {
  dice random{11};
  int several = 0;
  for (int round = 0; round < 200; ++round) {
    auto plan = training({.data = 4});
    const auto batch = plan.work->batch;
    names expected;
    const auto wrong = [&random] { return random.number(0, 2) == 0; };
    if (wrong()) {
      plan.recomputed_units = -1;
      expected.insert("blocks_of_recomputation");
    }
    if (wrong()) {
      plan.mesh[axis::expert] = 2;
      expected.insert("experts_exist");
    }
    if (wrong()) {
      plan.sch = pipedream();
      plan.work->optimizer.clip = 1;
      expected.insert("clipping_of_whole_updates");
    }
    if (wrong()) {
      plan.exchange = find_exchange("hogwild");
      plan.copies.checkpoint_every = 1;
      expected.insert("checkpoints_of_one_network");
      if (wrong()) {
        plan.mesh[axis::tensor] = 2;
        expected.insert("single_updates_without_shards");
      }
    }
    std::vector<std::int64_t> samples, lengths;
    if (wrong()) {
      lengths = {4, 5};
      expected.insert("lengths_within_the_model");
    }
    if (wrong()) {
      samples.assign(16, 0);
      expected.insert({"a_sample_in_each_microbatch", "samples_add_up_to_the_batch"});
    } else if (wrong()) {
      samples = {batch + 1, 1, 1};
      expected.insert({"a_size_for_each_microbatch", "samples_add_up_to_the_batch"});
    }
    set_sizes(plan, samples, lengths);
    if (wrong()) {
      plan.work->batch = 15;
      expected.insert("samples_for_all_microbatches");
    }
    const auto broken = broken_rules(plan);
    CHECK(names_of(broken) == expected);
    CHECK(broken.size() == expected.size());
    several += broken.size() > 1;
    CHECK(validation_error(plan) == (broken.empty() ? "" : broken.front().sentence));
  }
  CHECK(several > 100);
}

TEST_CASE("a rule that needs valid sizes is left out where sizes are not valid",
          "[validity]") {
  auto plan = training({.data = 2, .exchange = "hogwild", .tied = true}, pipedream());
  CHECK(names_of(broken_rules(plan)).contains("tied_ends_update_together"));
  plan.dims.stages = 0;
  const auto broken = names_of(broken_rules(plan));
  CHECK(broken == names{"sizes_of_schedule", "tied_ends_of_all_replicas"});
}

} // namespace troupe::validity_test
