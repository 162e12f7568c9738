// Every proof is shown to refuse: what is true, with one thing changed.

#include "actors/proof/proof.hpp"

#include "actors/proof/formula.hpp"
#include "actors/proof/record_check.hpp"
#include "actors/proof/step_judge.hpp"
#include "actors/run/whole_weights.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <stdexcept>

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A run, what it was to be, and the rule that was asked for.
struct proved_run {
  run_plan plan;
  run_result result;
  std::optional<published::rule> by;

  /// What the proofs that fail say, a line each.
  std::string refusals() const {
    std::string text;
    for (const auto& p : prove(plan, result, by))
      if (p.fails())
        text += p.name + ": " + p.detail + "\n";
    return text;
  }
};

proved_run run_of(run_plan plan) {
  keep_for_proofs(plan);
  auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.how == ending::finished);
  const auto by = rule_of(plan.sch);
  return {std::move(plan), std::move(result), by};
}

run_plan small(const schedule& sch, int data = 1,
               const std::string& exchange = "ring") {
  auto plan = tiny::training_of(sch, {2, 4, 2}, clock_kind::virtual_time, tiny::gpt(4));
  plan.data = data;
  plan.exchange = find_exchange(exchange);
  plan.work->batch = 8 * data + 1;
  plan.machines.inside.latency = 100'000;
  return plan;
}

run_plan sharded(const schedule& sch) {
  auto plan = small(sch);
  plan.tensor = 2;
  plan.work->shards = *make_shards<float>(tiny::gpt(4), 2);
  return plan;
}

/// Schedules whose updates see the gradients of all stages before.
std::vector<schedule> all_kinds() {
  return {gpipe(),     one_f_one_b(), chimera(),          two_bw(),
          pipedream(), pipedream(3),  pipedream(1, true), ampnet(3, 2)};
}

void flip_lowest_bit(float& value) {
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U);
}

std::string is_instead(double is, double should_be) {
  return " is " + exact(is) + " instead of " + exact(should_be);
}

/// A parameter of the second stage, and where it is.
struct place {
  std::size_t layer;
  const parameter* what;

  float& in(std::vector<std::vector<float>>& buckets, std::size_t index) const {
    return buckets[layer][static_cast<std::size_t>(what->offset) + index];
  }
};

place second_of_stage_1(const run_plan& plan) {
  const auto layer = static_cast<std::size_t>(plan.work->first_layers[1]);
  return {layer, &plan.work->whole.layers[layer]->parameters()[1]};
}

place called(const run_plan& plan, const std::string& name) {
  for (std::size_t l = 0; l < plan.work->whole.layers.size(); ++l)
    for (const auto& p : plan.work->whole.layers[l]->parameters())
      if (p.name == name)
        return {l, &p};
  throw std::logic_error("no parameter " + name);
}

} // namespace

TEST_CASE("runs that are right are refused by no proof", "[refusal]") {
  for (const auto& sch : all_kinds())
    CHECK(run_of(small(sch)).refusals().empty());
  CHECK(run_of(sharded(one_f_one_b())).refusals().empty());
}

TEST_CASE("a value off by one bit is refused with its place and both values",
          "[refusal]") {
  const auto sch = GENERATE(one_f_one_b(), chimera(), pipedream(3), two_bw());
  auto run = run_of(small(sch));
  const auto which = second_of_stage_1(run.plan);
  const bool of_gradient = GENERATE(false, true);
  auto& value = which.in(of_gradient ? run.result.gradients : run.result.parameters, 5);
  const auto right = static_cast<double>(value);
  flip_lowest_bit(value);
  const auto says =
    "stage 1: " + std::string{of_gradient ? "gradient of " : "parameter "}
    + which.what->name + "[5]" + is_instead(static_cast<double>(value), right);
  CHECK_THAT(run.refusals(), ContainsSubstring("replay: " + says));
  const auto* const other = sch.asynchronous() ? "formula: " : "plain loop: ";
  CHECK_THAT(run.refusals(), ContainsSubstring(other + says));
}

TEST_CASE("a loss off by one bit is refused with its minibatch and both values",
          "[refusal]") {
  const auto sch = GENERATE(gpipe(), pipedream(), ampnet(3, 2));
  auto run = run_of(small(sch));
  const auto right = run.result.loss[1];
  run.result.loss[1] = std::nextafter(right, 0);
  CHECK_THAT(run.refusals(),
             ContainsSubstring("replay: loss of minibatch 1"
                               + is_instead(run.result.loss[1], right)));
  run.result.loss.pop_back();
  CHECK_THAT(run.refusals(), ContainsSubstring("losses instead of"));
}

TEST_CASE("the formula refuses every entry of a record that is changed", "[refusal]") {
  const auto sch = GENERATE(from_range(all_kinds()));
  const auto right = run_of(small(sch));
  const auto refused = [&](const std::function<void(std::vector<sample>&)>& change,
                           std::size_t rank) {
    auto result = right.result;
    change(result.actions[rank]);
    return !first_wrong(right.plan, *right.by, result).empty();
  };
  REQUIRE_FALSE(refused([](auto&) {}, 0));
  for (std::size_t rank = 0; rank < right.result.actions.size(); ++rank)
    for (std::size_t i = 0; i < right.result.actions[rank].size(); ++i) {
      const auto a = right.result.actions[rank][i].what;
      INFO(sch.name << ": " << to_string(a, true));
      const auto changed = [&](const auto& change) {
        return refused([&](std::vector<sample>& row) { change(row[i]); }, rank);
      };
      for (const int by : {-1, 1}) {
        CHECK(changed([&](sample& s) { s.version += by; }));
        CHECK(changed([&](sample& s) { s.versions_alive += by; }));
        CHECK(changed([&](sample& s) { s.what.microbatch += by; }));
        CHECK(changed([&](sample& s) { s.what.stage += by; }));
        if (a.what == op::update) {
          CHECK(changed([&](sample& s) { s.gradients += by; }));
          CHECK(changed([&](sample& s) { s.stalest += by; }));
          CHECK(changed([&](sample& s) { s.staleness += by; }));
        }
        if (sch.local_rule()) {
          CHECK(changed([&](sample& s) { s.start += by; }));
          CHECK(changed([&](sample& s) { s.end += by; }));
        }
      }
      CHECK(changed([](sample& s) {
        s.what.what = s.what.what == op::forward ? op::backward : op::forward;
      }));
      CHECK(changed([](sample& s) { s.part = true; }));
      CHECK(refused([&](auto& row) { row.erase(row.begin() + static_cast<int>(i)); },
                    rank));
      CHECK(refused(
        [&](auto& row) { row.insert(row.begin() + static_cast<int>(i), row[i]); },
        rank));
      if (i == 0)
        continue;
      // Only an update and a forward that does not read what it makes may change
      // places.
      const auto before = right.result.actions[rank][i - 1].what;
      if (before.what != op::update && a.what != op::update)
        CHECK(refused([&](auto& row) { std::swap(row[i - 1], row[i]); }, rank));
    }
}

TEST_CASE("the formula says what is wrong with an entry", "[refusal]") {
  auto run = run_of(small(pipedream()));
  auto& row = run.result.actions[0];
  const auto at = [&](op what, int microbatch) -> sample& {
    return *std::ranges::find_if(row, [&](const sample& s) {
      return s.what.what == what && s.what.microbatch == microbatch;
    });
  };
  SECTION("a version one too new") {
    ++at(op::forward, 4).version;
    CHECK_THAT(run.refusals(),
               ContainsSubstring(
                 "formula: rank 0: F4 of stage 0 read version 4, by the formula 3"));
  }
  SECTION("a version too many alive") {
    ++at(op::update, 4).versions_alive;
    CHECK_THAT(run.refusals(),
               ContainsSubstring("U4 of stage 0 left 3 versions alive"));
  }
  SECTION("backwards that have changed places") {
    std::swap(at(op::backward, 1), at(op::backward, 2));
    CHECK_THAT(run.refusals(), ContainsSubstring("formula: rank 0: B2 of stage 0 came "
                                                 "where that of microbatch 1"));
  }
  SECTION("an update twice") {
    row.insert(std::ranges::find(row, at(op::update, 3).start, &sample::start),
               at(op::update, 3));
    CHECK_THAT(run.refusals(), ContainsSubstring("formula: ")
                                 && ContainsSubstring("replay: U3 of stage 0"));
  }
}

TEST_CASE("another time than the paper's is refused", "[refusal]") {
  auto plan = small(GENERATE(naive(), gpipe(), one_f_one_b(), chimera()));
  plan.machines = {};
  auto run = run_of(plan);
  REQUIRE(run.refusals().empty());
  SECTION("of the run") {
    ++run.result.sums.makespan;
    CHECK_THAT(run.refusals(), ContainsSubstring("formula: the run took "));
  }
  SECTION("of a rank") {
    --run.result.sums.busy[1];
    CHECK_THAT(run.refusals(), ContainsSubstring("formula: rank 1 was idle for "));
  }
}

TEST_CASE("a replay refuses a record that cannot have happened", "[refusal]") {
  auto run = run_of(small(GENERATE(one_f_one_b(), pipedream())));
  const auto erase_first = [&](std::size_t rank, op what) {
    auto& row = run.result.actions[rank];
    row.erase(
      std::ranges::find_if(row, [&](const sample& s) { return s.what.what == what; }));
  };
  SECTION("without a forward") {
    erase_first(0, op::forward);
    CHECK_THAT(
      run.refusals(),
      ContainsSubstring("replay: stage 0 stands at B0, whose gradient")
        || ContainsSubstring("replay: B0 of stage 0 comes before its forward"));
  }
  SECTION("without a backward") {
    erase_first(1, op::backward);
    CHECK_THAT(run.refusals(), ContainsSubstring("replay: "));
  }
  SECTION("without an update") {
    erase_first(1, op::update);
    CHECK_THAT(run.refusals(), ContainsSubstring("replay: "));
  }
  SECTION("without the last update") {
    auto& row = run.result.actions[1];
    row.pop_back();
    CHECK_THAT(run.refusals(), ContainsSubstring("that no update of the record covers")
                                 || ContainsSubstring("to which not all come"));
  }
  SECTION("with a version that is not there") {
    run.result.actions[0].front().version = 7;
    CHECK_THAT(run.refusals(),
               ContainsSubstring("replay: F0 of stage 0 read version 7"));
  }
}

TEST_CASE("a run is refused by the formula of every other schedule", "[refusal]") {
  for (const auto& sch : all_kinds()) {
    auto run = run_of(small(sch));
    for (const auto& other : all_kinds()) {
      run.by = rule_of(other);
      INFO(sch.name << " judged as " << other.name);
      CHECK((first_wrong(run.plan, *run.by, run.result).empty()
             == (rule_of(sch) == run.by)));
    }
  }
}

TEST_CASE("a schedule that no paper has is told so, and is no failure", "[refusal]") {
  auto mine = one_f_one_b();
  mine.name = "mine";
  const auto run = run_of(small(mine));
  CHECK(run.refusals().empty());
  const auto proofs = prove(run.plan, run.result);
  const auto formula = std::ranges::find(proofs, "formula", &proof::name);
  REQUIRE(formula != proofs.end());
  CHECK(formula->what == verdict::no_formula);
}

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
  plan.work->optimizer = {.kind = optimizer_kind::sgd,
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
    CHECK_THAT(run.refusals(),
               ContainsSubstring(
                 "formula: share 0 of stage 1: data replica " + std::to_string(data)
                 + " got the answer to its update 0 when it was 1 ahead"));
    CHECK_THAT(run.refusals(), ContainsSubstring("replay: "));
  }
  SECTION("by the ranks' clocks") {
    auto& row = run.result.actions[0];
    std::ranges::find(row, op::update, [](const sample& s) {
      return s.what.what;
    })->end = 1;
    CHECK_THAT(run.refusals(), ContainsSubstring("before the slowest could push"));
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
  plan.keep_versions = true;
  const auto made = [&](int data, int version) {
    mail::version_made result{{data, 0, 1}, version, {}, {}};
    for (const auto values : plan.buckets_of(result.where))
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
  CHECK_THAT(run.refusals(),
             ContainsSubstring("replicas: stage 1 (replica 1) has other"));
}

TEST_CASE("update by update, what rounding cannot explain is refused", "[refusal]") {
  const auto sch = GENERATE(one_f_one_b(), pipedream(2));
  auto run = run_of(sharded(sch));
  REQUIRE(run.refusals().empty());
  auto& after = run.result.versions[1]; // what the second update made
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
    for (std::size_t i = 0; i < 16 * 8; ++i) // half of its rows
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
    CHECK_THAT(run.refusals(), ContainsSubstring("ends with other parameters"));
  }
}
