// SPDX-License-Identifier: BSD-3-Clause
// The results of an expert for rows of several data replicas, compared with the
// expert's layer on all rows at once.

#include "actors/experts/expert_tensors.hpp"

#include "plan/stage_layers.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <random>

namespace troupe::expert_tensors_test {

using array = std::vector<float>;

namespace {

constexpr position host{0, 0, 0};

run_plan spread_experts(recomputation how) {
  auto sch = one_f_one_b();
  sch.recomputes = how;
  return tiny::training_on({.data = 2, .expert = 2, .experts = true}, sch, {1, 2},
                           clock_kind::virtual_time);
}

array random_array(std::mt19937& chance, std::int64_t values) {
  std::normal_distribution<float> normal;
  array result;
  for (std::int64_t i = 0; i < values; ++i)
    result.push_back(normal(chance));
  return result;
}

array behind(array first, const array& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Expert 0, with parameters that the test holds.
struct computing_expert {
  explicit computing_expert(recomputation how = recomputation::none)
    : plan(spread_experts(how)) {
    const auto values = random_array(chance, expert.bucket());
    std::ranges::copy(values, parameters.data());
  }

  /// Computes rows of both data replicas; returns the answer to each.
  std::vector<array> compute(op what, int microbatch, const array& a, const array& c,
                             bool begins_sum = false) {
    rows_by_source rows;
    for (const auto* one : {&a, &c}) {
      mail::rows_to_expert part{{what, 0, 0, microbatch},
                                static_cast<int>(rows.size()),
                                static_cast<std::int64_t>(one->size()) / width,
                                {},
                                {}};
      if (!one->empty()) {
        part.payload = payloads.acquire();
        std::ranges::copy(*one, part.payload.data());
      }
      if (rows.empty())
        part.loan = mail::lent_arrays{parameters.data(), gradients, 0, begins_sum};
      rows.push_back(std::move(part));
    }
    work.compute(rows);
    std::vector<array> result;
    const auto made = work.results(rows);
    for (std::size_t i = 0; i < made.size(); ++i) {
      CHECK(!!made[i] == (rows[i].rows > 0 && what != op::weight_gradient));
      result.emplace_back();
      if (made[i])
        result.back().assign(made[i].data(), made[i].data() + rows[i].rows * width);
    }
    return result;
  }

  /// The outputs of the layer for rows; with output gradients also the gradients of the
  /// inputs and of the parameters.
  struct defined {
    array y, dx, dw;
  };
  defined by_definition(const array& x, const array& dy) {
    const auto rows = static_cast<std::int64_t>(x.size()) / width;
    const auto sizes = expert.sizes(rows, 1);
    const auto space = [](std::int64_t values) {
      return array(static_cast<std::size_t>(values));
    };
    defined d{space(rows * width), space(rows * width), space(expert.bucket())};
    auto saved = space(sizes.saved), kept = space(sizes.kept),
         scratch = space(sizes.scratch);
    frame<float> f;
    f.samples = rows;
    f.x = x.data();
    f.saved = saved.data();
    f.y = d.y.data();
    f.dy = dy.data();
    f.dx = d.dx.data();
    f.kept = kept.data();
    f.parameters = parameters.data();
    f.gradients = d.dw.data();
    f.scratch = scratch.data();
    f.compute_stream = &on;
    expert.forward(f);
    expert.input_gradient(f);
    expert.weight_gradient(f);
    return d;
  }

  array summed() const {
    return {gradients.data(), gradients.data() + expert.bucket()};
  }

  run_plan plan;
  const layer<float>& expert = *plan.work->whole.experts[0].expert;
  std::int64_t width = expert.input();
  std::mt19937 chance{7};
  rank_memory memory;
  memory_account other;
  stream on{1};
  expert_tensors work{plan, host, 0, 2, 1, memory, on};
  pool payloads{"a test's rows", 2, 3 * width, other},
    buckets{"a test's buckets", 2, expert.bucket(), other};
  buffer parameters = buckets.acquire(), gradients = buckets.acquire();
};

} // namespace

TEST_CASE("an expert computes the rows of all data replicas behind one another",
          "[expert]") {
  computing_expert e;
  const auto reserved = e.memory.total().reserved();
  const auto a = random_array(e.chance, 2 * e.width),
             c = random_array(e.chance, 3 * e.width),
             da = random_array(e.chance, 2 * e.width),
             dc = random_array(e.chance, 3 * e.width),
             alone = random_array(e.chance, e.width),
             dalone = random_array(e.chance, e.width);
  const auto d = e.by_definition(behind(a, c), behind(da, dc));
  const auto y = e.compute(op::forward, 0, a, c);
  CHECK(behind(y[0], y[1]) == d.y);
  CHECK(y[1].size() == c.size());
  // Another microbatch comes between, from one data replica alone.
  const auto d_alone = e.by_definition(alone, dalone);
  const auto y_alone = e.compute(op::forward, 1, {}, alone);
  CHECK(y_alone[0].empty());
  CHECK(y_alone[1] == d_alone.y);
  const auto dx = e.compute(op::backward, 0, da, dc, true);
  CHECK(behind(dx[0], dx[1]) == d.dx);
  CHECK(e.summed() == d.dw); // sets the gradients
  e.compute(op::backward, 1, {}, dalone);
  auto sum = d.dw;
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] += d_alone.dw[i];
  const auto both = e.summed();
  for (std::size_t i = 0; i < sum.size(); ++i)
    CHECK(std::abs(both[i] - sum[i]) <= 1e-5F * (1 + std::abs(sum[i])));
  CHECK(e.memory.total().reserved() == reserved);
}

TEST_CASE("an expert's weight gradient may come later than its input gradient",
          "[expert]") {
  computing_expert e;
  const auto x = random_array(e.chance, 2 * e.width),
             dy = random_array(e.chance, 2 * e.width),
             other = random_array(e.chance, e.width),
             dother = random_array(e.chance, e.width);
  const auto d = e.by_definition(x, dy), d_other = e.by_definition(other, dother);
  std::fill_n(e.gradients.data(), e.expert.bucket(), 3.F);
  e.compute(op::forward, 0, x, {});
  CHECK(e.compute(op::input_gradient, 0, dy, {})[0] == d.dx);
  CHECK(std::ranges::count(e.summed(), 3.F) == e.expert.bucket()); // not yet
  std::fill_n(e.gradients.data(), e.expert.bucket(), 0.F); // also between parameters
  // A whole backward comes between the two.
  e.compute(op::forward, 1, other, {});
  e.compute(op::backward, 1, dother, {}, true);
  CHECK(e.summed() == d_other.dw);
  e.compute(op::weight_gradient, 0, dy, {}, true);
  CHECK(e.summed() == d.dw);
}

TEST_CASE("an expert that recomputes holds no stash between its forwards", "[expert]") {
  computing_expert e{recomputation::late};
  const auto x = random_array(e.chance, 2 * e.width),
             dy = random_array(e.chance, 2 * e.width);
  const auto d = e.by_definition(x, dy);
  for (int microbatch = 0; microbatch < 5; ++microbatch) // there are two stashes
    CHECK(e.compute(op::forward, microbatch, x, {})[0] == d.y);
  for (int microbatch = 0; microbatch < 5; ++microbatch) {
    CHECK(e.compute(op::recompute, microbatch, x, {})[0] == d.y);
    CHECK(e.compute(op::backward, microbatch, dy, {}, true)[0] == d.dx);
    CHECK(e.summed() == d.dw);
  }
}

TEST_CASE("an update to which no rows came begins with gradients of 0", "[expert]") {
  computing_expert e;
  std::fill_n(e.gradients.data(), e.expert.bucket(), 3.F);
  const auto none = e.compute(op::backward, 0, {}, {}, true);
  CHECK((none[0].empty() && none[1].empty()));
  CHECK(std::ranges::count(e.summed(), 0.F) == e.expert.bucket());
}

TEST_CASE("rows cost their share of the stage's forward", "[expert]") {
  computing_expert e;
  const auto stage = e.work.operations_of_stage();
  CHECK(stage == operations_of(e.plan, 0));
  CHECK(e.work.share_of(6, 3) == e.expert.operations() * 6 / (stage * 3));
}

} // namespace troupe::expert_tensors_test
