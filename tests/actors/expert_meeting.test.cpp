// SPDX-License-Identifier: BSD-3-Clause
// The rows that stages send to experts, the answers, and the arrays that experts
// borrow.

#include "actors/meetings/expert_meeting.hpp"

#include "plan/stage_buckets.hpp"
#include "plan/stage_experts.hpp"
#include "tests/actors/meeting_office.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <map>
#include <memory>

namespace troupe::expert_meeting_test {

using tiny::meeting_office;
using array = std::vector<float>;
using kind = shard_collective<float>::kind;

namespace {

constexpr std::int64_t width = 8;

/// An expert of the test's own. When rows of both data replicas are there, this expert
/// answers each replica with the rows, times the expert's number and two.
class multiplying_expert : public meeting {
public:
  multiplying_expert(const run_plan& plan, int expert, position host)
    : expert_(expert), host_(host) {
    const auto of_stage = experts_of(plan, 0);
    in_stage_ =
      static_cast<int>(std::ranges::find(of_stage, expert) - of_stage.begin());
  }

  meeting_messages begin(int) override { return {}; }
  meeting_messages receive(mail::meeting_message what) override {
    const auto rows = std::get<mail::rows_to_expert>(what.body);
    CHECK(rows.loan.has_value() == (rows.source == host_.data));
    CHECK(what.kind.has_value() == (rows.source != host_.data));
    const bool travel = rows.action.op != op::weight_gradient;
    CHECK(what.bytes == (travel ? rows.rows * width * 4 : 0));
    CHECK(!!rows.payload == (travel && rows.rows > 0));
    if (rows.loan)
      loans.push_back(*rows.loan);
    inbox_.push_back(rows);
    meeting_messages result;
    if (inbox_.size() < 2)
      return result;
    for (auto& one : inbox_) {
      CHECK(one.action == inbox_.front().action);
      auto answer = one.payload ? answers_.acquire() : buffer{};
      for (std::int64_t i = 0; answer && i < one.rows * width; ++i)
        answer.data()[i] = one.payload.data()[i] * static_cast<float>(expert_ + 2);
      result.push_back({{role::stage, {one.source, 0, 0}},
                        meeting_kind::experts,
                        mail::rows_from_expert{in_stage_, std::move(answer)}});
    }
    inbox_.clear();
    return result;
  }
  bool is_done(int) const override { return true; }
  std::optional<missing_peer> waits_for() const override { return {}; }

  std::vector<mail::lent_arrays> loans;

private:
  int expert_, in_stage_;
  position host_;
  memory_account memory_;
  pool answers_{"a test's answers", 4, 3 * width, memory_};
  std::vector<mail::rows_to_expert> inbox_;
};

run_plan plan_of() {
  return tiny::training_on({.data = 2, .expert = 2, .experts = true}, one_f_one_b(),
                           {1, 2, 2}, clock_kind::virtual_time);
}

/// A stage that asks the experts of its two layers in a forward and in backwards.
struct asking_stage {
  asking_stage(const run_plan& plan, int d, std::mt19937& chance)
    : where{d, 0, 0},
      meets(
        plan, where,
        [this](std::size_t bucket, int version, bool gradients) {
          lent.push_back({bucket, version, gradients});
          return std::pair{weight_place<float>{parameters.data()},
                           gradients ? parameters : buffer{}};
        },
        &memory) {
    for (const auto& e : plan.work->whole.experts)
      if (layers.empty() || layers.back() != e.of_layer)
        layers.push_back(e.of_layer);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      auto& count = counts.emplace_back();
      for (int e = 0; e < 4; ++e)
        count.push_back(static_cast<std::int32_t>(chance() % 4)); // the capacity is 3
      std::int64_t rows = 0;
      for (const auto c : count)
        rows += c;
      arrays.push_back(tiny::random_numbers(chance, rows * width));
    }
    before = arrays;
  }

  void add(std::vector<meeting_office::step>& to, op what, int microbatch,
           int version) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      to.push_back({[this] { return meets.is_done(0); },
                    [=, this] {
                      if (l == 0)
                        meets.expect({what, 0, 0, microbatch}, version, rows(what));
                      return meets.begin(static_cast<int>(l));
                    }});
    }
    to.push_back(
      {[this] { return meets.is_done(0); }, [] { return meeting_messages{}; }});
  }

  std::vector<expert_meeting::rows_of_layer> rows(op what) {
    std::vector<expert_meeting::rows_of_layer> result;
    for (std::size_t l = 0; l < layers.size(); ++l)
      result.push_back(
        {layers[l], {kind::experts, arrays[l].data(), 99, counts[l].data(), 12}, what});
    return result;
  }

  struct lending {
    std::size_t bucket;
    int version;
    bool gradients;
  };

  position where;
  memory_account memory;
  pool one{"a test's parameters", 1, 1, memory};
  buffer parameters = one.acquire();
  std::vector<lending> lent;
  expert_meeting meets;
  std::vector<std::size_t> layers;
  std::vector<std::vector<std::int32_t>> counts; // of each layer
  std::vector<array> arrays, before;             // likewise
};

/// Both data replicas of a stage and the experts of its layers.
struct asked_experts {
  explicit asked_experts(unsigned seed) : plan(plan_of()) {
    std::mt19937 chance{seed};
    for (int d = 0; d < 2; ++d)
      stages.push_back(std::make_unique<asking_stage>(plan, d, chance));
    for (const int e : experts_of(plan, 0))
      experts.push_back(
        std::make_unique<multiplying_expert>(plan, e, host_of(plan, e, {0, 0, 0})));
  }

  void run(
    unsigned seed,
    const std::function<void(asking_stage&, std::vector<meeting_office::step>&)>& add) {
    meeting_office office;
    for (auto& s : stages) {
      std::vector<meeting_office::step> steps;
      add(*s, steps);
      office.join({role::stage, s->where}, meeting_kind::experts, s->meets,
                  std::move(steps));
    }
    for (std::size_t i = 0; i < experts.size(); ++i) {
      const int e = experts_of(plan, 0)[i];
      office.join({role::expert, host_of(plan, e, {0, 0, 0}), e}, meeting_kind::experts,
                  *experts[i], {});
    }
    office.run(seed);
  }

  run_plan plan;
  std::vector<std::unique_ptr<asking_stage>> stages;
  std::vector<std::unique_ptr<multiplying_expert>> experts;
};

} // namespace

TEST_CASE("what an expert makes of rows takes their place, in each data replica",
          "[meetings][experts]") {
  const unsigned seed = GENERATE(range(0U, 20U));
  asked_experts all{seed};
  REQUIRE(all.stages[0]->layers.size() == 2);
  all.run(seed, [](asking_stage& s, auto& steps) { s.add(steps, op::forward, 0, 5); });
  for (const auto& s : all.stages) {
    for (std::size_t l = 0; l < 2; ++l) {
      std::size_t row = 0;
      auto expected = s->before[l];
      for (int e = 0; e < 4; ++e)
        for (int r = 0; r < s->counts[l][static_cast<std::size_t>(e)]; ++r, ++row)
          for (std::size_t v = 0; v < width; ++v)
            expected[row * width + v] *=
              static_cast<float>(4 * static_cast<int>(l) + e + 2);
      CHECK(s->arrays[l] == expected);
    }
    const auto loads = s->meets.take_loads();
    REQUIRE(loads.size() == 2);
    for (std::size_t l = 0; l < 2; ++l) {
      CHECK(loads[l].of_layer == s->layers[l]);
      CHECK(loads[l].microbatch == 2 * s->where.data); // counted over both replicas
      CHECK(loads[l].rows
            == std::vector<std::int64_t>(s->counts[l].begin(), s->counts[l].end()));
      CHECK(loads[l].dropped
            == 12 - static_cast<std::int64_t>(s->before[l].size()) / width);
    }
    CHECK(s->meets.take_loads().empty());
  }
}

TEST_CASE("an expert is lent the version that the action reads, by the stage beside it",
          "[meetings][experts]") {
  const unsigned seed = GENERATE(range(0U, 10U));
  asked_experts all{seed};
  all.run(seed, [](asking_stage& s, auto& steps) {
    s.add(steps, op::forward, 0, 5);
    s.add(steps, op::backward, 0, 6);
    s.add(steps, op::recompute, 1, 7);
    s.add(steps, op::input_gradient, 1, 8);
    s.add(steps, op::weight_gradient, 1, 9);
    steps.push_back({{}, [&s] {
                       s.meets.begin_update();
                       return meeting_messages{};
                     }});
    s.add(steps, op::weight_gradient, 2, 10);
  });
  for (const auto& e : all.experts) {
    REQUIRE(e->loans.size() == 6);
    // whether a backward begins an update's sum
    const bool begins[] = {false, true, false, false, false, true};
    const bool adds[] = {false, true, false, false, true, true};
    for (int i = 0; i < 6; ++i) {
      const auto& loan = e->loans[static_cast<std::size_t>(i)];
      CHECK(loan.version == 5 + i);
      CHECK(loan.begins_sum == begins[i]);
      CHECK(!!loan.gradients == adds[i]);
    }
  }
  for (const auto& s : all.stages) {
    const auto buckets = layer_buckets(all.plan, s->where);
    REQUIRE(s->lent.size() == 24); // two experts of two layers, six times
    for (const auto& one : s->lent)
      CHECK(buckets[one.bucket].expert >= 0);
  }
}

TEST_CASE("rows of a segment that a backward recomputes are a recomputation's",
          "[meetings][experts]") {
  auto plan = tiny::simulation(one_f_one_b(), {2, 4});
  plan.mesh[axis::data] = plan.mesh[axis::expert] = 2;
  plan.exchange = find_exchange("ring");
  expert_meeting meets{plan, {0, 0, 1}, {}, nullptr};
  meets.expect({op::backward, 0, 1, 3}, 2,
               {{0, {kind::experts, nullptr, 6}, op::recompute},
                {0, {kind::experts, nullptr, 6}, op::backward}});
  for (int occasion = 0; occasion < 2; ++occasion) {
    const auto out = meets.begin(occasion);
    const auto& rows = std::get<mail::rows_to_expert>(out.front().body);
    CHECK(rows.action == action{occasion == 0 ? op::recompute : op::backward, 0, 1, 3});
    CHECK(rows.loan->begins_sum == (occasion == 1));
    for (int e = 0; e < 2; ++e)
      meets.receive({{role::stage, {0, 0, 1}},
                     meeting_kind::experts,
                     mail::rows_from_expert{e, {}}});
  }
}

TEST_CASE("a stage of a simulation sends every expert as many rows, and waits for each",
          "[meetings][experts]") {
  auto plan = tiny::simulation(one_f_one_b(), {2, 4});
  plan.mesh[axis::data] = plan.mesh[axis::expert] = 2;
  plan.exchange = find_exchange("ring");
  expert_meeting meets{plan, {1, 0, 1}, {}, nullptr};
  CHECK(meets.share() == 1.0 / 3);
  meets.expect({op::forward, 0, 1, 3}, 2,
               {{0, {kind::experts, nullptr, 6}, op::forward}});
  CHECK(meets.is_done(0));
  const auto out = meets.begin(0);
  REQUIRE(out.size() == 2);
  for (int e = 0; e < 2; ++e) {
    const auto& one = out[static_cast<std::size_t>(e)];
    CHECK(one.to == performer{role::expert, {e, 0, 1}, 2 + e});
    const auto& rows = std::get<mail::rows_to_expert>(one.body);
    CHECK(rows.source == 1);
    CHECK(rows.rows == 3);
    CHECK(rows.action == action{op::forward, 0, 1, 3});
    CHECK(one.bytes == 12);
    CHECK(rows.loan.has_value() == (e == 1));
    CHECK(one.kind == (e == 1 ? std::nullopt : std::optional{traffic::experts}));
  }
  const auto answer = [&](int expert) {
    meets.receive({{role::stage, {1, 0, 1}},
                   meeting_kind::experts,
                   mail::rows_from_expert{expert, {}}});
  };
  REQUIRE(meets.waits_for());
  CHECK(meets.waits_for()->peer == "expert 0 with stage 1");
  answer(0);
  CHECK_FALSE(meets.is_done(0));
  CHECK(meets.waits_for()->input == "rows");
  CHECK(meets.waits_for()->peer == "expert 1 with stage 1 (replica 1)");
  answer(1);
  CHECK(meets.is_done(0));
  CHECK_FALSE(meets.waits_for());
  CHECK(meets.take_loads().empty()); // nothing is computed
}

} // namespace troupe::expert_meeting_test
