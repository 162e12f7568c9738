// SPDX-License-Identifier: BSD-3-Clause
// Proofs of runs with several replicas or tensor shards, and proofs of optimizers: each
// must refuse a changed record.

#include "actors/proof/proof.hpp"
#include "actors/run/gathered_parameters.hpp"
#include "plan/stage_buckets.hpp"
#include "tests/actors/proved_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::replica_proof_test {

using namespace tiny;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a sum in another order is refused", "[refusal]") {
  const auto sch = GENERATE(one_f_one_b(), pipedream());
  auto run = run_of(small(sch, 3, "ring"));
  CHECK(run.refusals().empty());
  run.plan.exchange = find_exchange("naive");
  CHECK_THAT(run.refusals(),
             ContainsSubstring("replay: ") && ContainsSubstring("relative difference"));
}

TEST_CASE("a run that learned otherwise than its plan says is refused", "[refusal]") {
  const auto sch = GENERATE(one_f_one_b(), chimera(), two_bw(), pipedream(3));
  const bool by_stage = sch.name == "pipedream";
  const std::string exchange = GENERATE("ring", "zero1", "server:async");
  auto plan = small(sch, 2, exchange);
  plan.work->optimizer = {.name = "sgd",
                          .rate = 0.01,
                          .schedule = {.cosine = true, .warmup = 10, .floor = 0.1},
                          .momentum = 0.5,
                          .weight_decay = 0.1,
                          .decay_only_matrices = true,
                          .clip = 0.1,
                          .scope = by_stage ? clip_scope::stage : clip_scope::network};
  auto run = run_of(plan);
  REQUIRE(run.refusals().empty());
  const auto refused = [&](const auto& change) {
    auto other = run;
    change(other.plan.work->optimizer);
    return other.refusals().find("replay: ") != std::string::npos;
  };
  INFO(sch.name << " by " << exchange);
  CHECK(refused([](auto& how) { how.momentum = 0.6; }));
  CHECK(refused([](auto& how) { how.weight_decay = 0; }));
  CHECK(refused([](auto& how) { how.decay_only_matrices = false; }));
  CHECK(refused([](auto& how) { how.clip = 0.2; }));
  CHECK(refused([&](auto& how) {
    how.scope = by_stage ? clip_scope::network : clip_scope::stage;
  }));
  CHECK(refused([](auto& how) { how.schedule.warmup = 11; }));
  CHECK(refused([](auto& how) { how.schedule.floor = 0.2; }));
  CHECK(refused([](auto& how) { how.schedule.cosine = false; }));
}

TEST_CASE("an answer one update early is refused", "[refusal]") {
  auto run = run_of(small(one_f_one_b(), 2, "server:staleness=0"));
  REQUIRE(run.refusals().empty());
  SECTION("by what servers say") {
    auto& accesses = run.result.accesses[1]; // of stage 1
    const auto answer = std::ranges::find(accesses, false, &shared_access::update);
    REQUIRE(answer - accesses.begin() == 2);
    const int data = accesses[0].data;
    if (answer->data != data)
      std::swap(accesses[2], accesses[3]);
    std::swap(accesses[1], accesses[2]); // before the other's update
    CHECK_THAT(
      run.refusals(),
      ContainsSubstring(
        "formula: share 0 of stage 1: data replica " + std::to_string(data)
        + " got the answer to update 0 when ahead of the slowest data replica by 1"));
    CHECK_THAT(run.refusals(), ContainsSubstring("replay: "));
  }
  SECTION("by the ranks' clocks") {
    auto& row = run.result.actions[0];
    std::ranges::find(row, op::update, [](const measured_action& s) {
      return s.action.op;
    })->end = 1;
    CHECK_THAT(run.refusals(),
               ContainsSubstring("before a slower replica pushed update"));
  }
}

TEST_CASE("an answer of other values is refused, also without a bound", "[refusal]") {
  auto run = run_of(small(pipedream(), 2, "server:async"));
  REQUIRE(run.refusals().empty());
  auto& accesses = run.result.accesses[0]; // an update and its answer, one by one
  const auto changed = std::ranges::adjacent_find(
    accesses, [](const shared_access& a, const shared_access& b) {
      return !a.update && b.update && a.data != b.data;
    });
  REQUIRE(changed != accesses.end());
  std::rotate(changed - 1, changed + 1, changed + 3); // the other's update comes later
  CHECK_THAT(run.refusals(),
             ContainsSubstring("replay: ") && ContainsSubstring("stage 0: parameter "));
}

TEST_CASE("a replica that has one other bit after any update is refused", "[refusal]") {
  auto plan = small(one_f_one_b(), 2);
  plan.keep.versions = true;
  const auto made = [&](int data, int version) {
    mail::version_made result{{data, 0, 1}, version, {}, {}};
    for (const auto values : buckets_of(plan, result.where))
      result.parameters.emplace_back(values, 0.5F);
    result.gradients = result.parameters;
    return result;
  };
  std::vector all{made(0, 1), made(1, 1), made(0, 2), made(1, 2)};
  run_result same;
  keep_versions(plan, all, same);
  CHECK(same.odd_stage.empty());
  CHECK(same.versions.size() == 2);
  flip_lowest_bit(all[1].parameters.front().front());
  run_result other;
  keep_versions(plan, all, other);
  CHECK(other.odd_stage == "stage 1 (replica 1)");
  auto run = run_of(small(one_f_one_b(), 2));
  run.result.odd_stage = other.odd_stage;
  CHECK_THAT(
    run.refusals(),
    ContainsSubstring("replicas: stage 1 (replica 1) has parameters that differ"));
}

TEST_CASE("update by update, what rounding cannot explain is refused", "[refusal]") {
  const auto sch = GENERATE(one_f_one_b(), pipedream(2));
  auto run = run_of(sharded(sch));
  REQUIRE(run.refusals().empty());
  auto& after = run.result.versions[1]; // the result of the second update
  SECTION("a gradient that was summed twice") {
    const auto gain = called(run.plan, "transformer.h.2.ln_1.weight");
    for (std::size_t i = 0; i < 8; ++i)
      gain.in(after.gradients, i) *= 2;
    CHECK_THAT(run.refusals(),
               ContainsSubstring("replay: at update 2, stage 1: gradient of "
                                 "transformer.h.2.ln_1.weight["));
  }
  SECTION("a shard whose part is missing") {
    const auto matrix = called(run.plan, "transformer.h.1.mlp.c_proj.weight");
    for (std::size_t i = 0; i < 16 * 8; ++i) // half of the layer's rows
      matrix.in(after.gradients, i) = 0;
    CHECK_THAT(run.refusals(),
               ContainsSubstring("replay: at update 2, stage 0: gradient of "
                                 "transformer.h.1.mlp.c_proj.weight["));
  }
  SECTION("a bias that one shard alone has added") {
    const auto bias = called(run.plan, "transformer.h.1.attn.c_proj.bias");
    bias.in(after.gradients, 3) *= 1.001F;
    CHECK_THAT(run.refusals(),
               ContainsSubstring("transformer.h.1.attn.c_proj.bias[3]"));
  }
  SECTION("a parameter off by one bit") {
    const auto head = called(run.plan, "lm_head.weight");
    auto& value = head.in(after.parameters, 4);
    const auto right = static_cast<double>(value);
    flip_lowest_bit(value);
    CHECK_THAT(
      run.refusals(),
      ContainsSubstring("replay: at update 2, stage 1: parameter lm_head.weight[4]"
                        + is_instead(static_cast<double>(value), right)));
  }
  SECTION("an optimizer that forgets") {
    run.plan.work->optimizer.beta1 = 0;
    CHECK_THAT(run.refusals(),
               ContainsSubstring("at update 1, stage 0: parameter ")
                 || ContainsSubstring("at update 2, stage 0: parameter "));
  }
  SECTION("a version on the way that was never made") {
    after = {};
    CHECK_THAT(run.refusals(), ContainsSubstring("version 2 of the run lacks layer 0"));
  }
  SECTION("a version without one layer") {
    after.gradients[2].clear();
    CHECK_THAT(run.refusals(), ContainsSubstring("version 2 of the run lacks layer 2"));
  }
  SECTION("a version that was never made") {
    run.result.versions.pop_back();
    CHECK_THAT(run.refusals(), ContainsSubstring("and no version"));
  }
  SECTION("a loss") {
    run.result.loss[1] *= 1.0001;
    CHECK_THAT(run.refusals(), ContainsSubstring("loss of minibatch 1 is"));
  }
  SECTION("another end than its last version") {
    flip_lowest_bit(run.result.parameters.front().front());
    CHECK_THAT(run.refusals(),
               ContainsSubstring("final parameters differ from its last version"));
  }
}

TEST_CASE("a tensor's gradient is judged by its own norm, however small that is",
          "[refusal]") {
  const auto run = run_of(sharded(one_f_one_b()));
  const auto& gradients = run.result.versions[1].gradients;
  const auto& work = *run.plan.work;
  const auto norm_of = [](auto begin, auto end) {
    double squares = 0;
    for (; begin != end; ++begin)
      squares += static_cast<double>(*begin) * static_cast<double>(*begin);
    return std::sqrt(squares);
  };
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const auto first = static_cast<std::size_t>(work.first_layers[stage]),
               last = static_cast<std::size_t>(work.first_layers[stage + 1]);
    double squares = 0;
    for (auto l = first; l < last; ++l)
      squares += std::pow(norm_of(gradients[l].begin(), gradients[l].end()), 2);
    int small_ones = 0;
    for (auto l = first; l < last; ++l)
      for (const auto& p : work.whole.layers[l]->parameters()) {
        const auto begin = gradients[l].begin() + p.offset;
        const double norm = norm_of(begin, begin + p.values());
        if (norm > 0.1 * std::sqrt(squares) || p.name.ends_with("attn.c_attn.bias"))
          continue; // a key's bias has a gradient of rounding alone
        ++small_ones;
        const double allowed = 2e-5 * std::max(norm, 0.01 * std::sqrt(squares));
        const auto refused = [&](double difference) {
          auto other = run;
          place{l, &p}.in(other.result.versions[1].gradients, 0) +=
            static_cast<float>(difference);
          return other.refusals().find("gradient of " + p.name + "[0]")
                 != std::string::npos;
        };
        INFO(p.name);
        CHECK(refused(2 * allowed));
        CHECK_FALSE(refused(0.5 * allowed));
      }
    CHECK(small_ones > 3);
  }
}

} // namespace troupe::replica_proof_test
