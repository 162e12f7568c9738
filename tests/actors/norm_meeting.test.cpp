// SPDX-License-Identifier: BSD-3-Clause
// The meeting in which optimizer shards find the norm of all gradients.

#include "actors/meetings/norm_meeting.hpp"

#include "tests/actors/meeting_office.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <memory>

namespace troupe::norm_meeting_test {

using Catch::Approx;
using tiny::meeting_office;

namespace {

/// Two stages of two data replicas, whose gradients are clipped at 0.1.
run_plan clipped(const std::string& exchange) {
  return tiny::training_on({.data = 2, .exchange = exchange, .clips = true},
                           one_f_one_b(), {2, 4}, clock_kind::virtual_time);
}

/// Optimizer shards of both stages of both data replicas: 0 0, 1 0, 0 1, 1 1.
struct four_shards {
  explicit four_shards(const run_plan& plan) {
    for (int s = 0; s < 2; ++s)
      for (int d = 0; d < 2; ++d) {
        where.push_back({d, 0, s});
        meets.push_back(std::make_unique<norm_meeting>(plan, where.back()));
      }
  }

  /// The factors that the shards find, update by update. \param squares for each update
  /// the squares of each shard
  using squares_of_shards = std::vector<std::vector<double>>;
  std::vector<std::vector<double>>
  factors(const std::vector<squares_of_shards>& squares, std::int64_t samples,
          unsigned seed, bool repeats = false) {
    std::vector<std::vector<double>> result(squares.size());
    meeting_office office{false, repeats};
    for (std::size_t i = 0; i < meets.size(); ++i) {
      auto* const m = meets[i].get();
      std::vector<meeting_office::step> steps;
      for (std::size_t u = 0; u < squares.size(); ++u) {
        result[u].resize(meets.size());
        steps.push_back({{}, [=, this] {
                           m->expect({where[i], samples, squares[u][i]});
                           return m->begin(norm_meeting::factor_known);
                         }});
        steps.push_back({[m] { return m->is_done(norm_meeting::factor_known); },
                         [m, &to = result[u][i]] {
                           to = m->factor();
                           m->next_update();
                           return meeting_messages{};
                         }});
      }
      office.join({role::optimizer_shard, where[i]}, meeting_kind::norm, *m,
                  std::move(steps));
    }
    office.run(seed);
    return result;
  }

  std::vector<position> where;
  std::vector<std::unique_ptr<norm_meeting>> meets;
};

} // namespace

TEST_CASE("the norm covers all stages and all shares, and all learn one factor",
          "[meetings][norm]") {
  const unsigned seed = GENERATE(range(0U, 20U));
  const auto plan = clipped("zero1");
  four_shards shards{plan};
  // Norms 5 / 2 = 2.5 and 0.1 / 2; the second needs no clipping.
  const auto factors =
    shards.factors({{{9}, {}, {10, 4}, {2}}, {{0}, {0.005}, {}, {0.005, 0}}}, 2, seed);
  for (const double f : factors[0])
    CHECK(f == Approx(0.1 / 2.5).epsilon(1e-6));
  for (const double f : factors[1])
    CHECK(f == 1);
}

TEST_CASE("data replicas that hold all gradients find the norm each by itself",
          "[meetings][norm]") {
  const unsigned seed = GENERATE(range(0U, 10U));
  const auto plan = clipped("ring");
  four_shards shards{plan};
  const auto factors = shards.factors({{{9}, {30}, {16}, {34}}}, 1, seed);
  CHECK(factors[0][0] == Approx(0.1 / 5).epsilon(1e-6));
  CHECK(factors[0][1] == Approx(0.1 / 8).epsilon(1e-6));
  CHECK(factors[0][2] == factors[0][0]);
  CHECK(factors[0][3] == factors[0][1]);
}

TEST_CASE("a letter that comes twice changes no factor", "[meetings][norm]") {
  const unsigned seed = GENERATE(range(0U, 40U));
  const auto plan = clipped("zero1");
  four_shards shards{plan};
  const double norms[] = {2, 20, 6, 10, 4, 30};
  std::vector<four_shards::squares_of_shards> squares;
  for (const double norm : norms) { // in parts that differ from shard to shard
    const double quarter = norm * norm / 4;
    squares.push_back({{quarter}, {quarter / 2}, {quarter, quarter / 2}, {quarter}});
  }
  const auto factors = shards.factors(squares, 1, seed, true);
  for (std::size_t u = 0; u < squares.size(); ++u)
    for (const double f : factors[u])
      CHECK(f == Approx(0.1 / norms[u]).epsilon(1e-6));
}

TEST_CASE("squares are summed in the order of the model, whoever comes first",
          "[meetings][norm]") {
  const unsigned seed = GENERATE(range(0U, 20U));
  const auto plan = clipped("zero1");
  four_shards shards{plan};
  // Added behind the first value, a one is lost; a thousand of ones before it would not
  // be.
  const double large = 9007199254740992; // 2^53
  const std::vector<double> ones(100'000, 1);
  const auto factors = shards.factors({{{large}, ones, ones, ones}}, 1, seed);
  CHECK(factors[0][0] == 0.1 / (94906265.624251559 + 1e-6)); // its root
}

TEST_CASE("the first shard waits for the others' squares, and they for its answer",
          "[meetings][norm]") {
  const auto plan = clipped("zero1");
  four_shards shards{plan};
  auto &first = *shards.meets[0], &third = *shards.meets[2];
  CHECK_FALSE(third.waits_for());
  CHECK_FALSE(third.is_done(norm_meeting::factor_known));
  third.expect({shards.where[2], 1, {1}});
  auto out = third.begin(norm_meeting::factor_known);
  REQUIRE(out.size() == 1);
  CHECK(out[0].to == performer{role::optimizer_shard, {0, 0, 0}});
  CHECK_FALSE(out[0].kind);
  REQUIRE(third.waits_for());
  CHECK(third.waits_for()->input == "the norm of all gradients");
  CHECK(third.waits_for()->peer == "optimizer of stage 0");
  CHECK(first.receive(std::move(out[0])).empty());
  CHECK_FALSE(first.waits_for()); // this shard has not come either
  first.expect({shards.where[0], 1, {1}});
  first.receive(std::move(first.begin(norm_meeting::factor_known)[0]));
  REQUIRE(first.waits_for());
  CHECK(first.waits_for()->input == "a part of the gradient norm");
  CHECK(first.waits_for()->peer == "optimizer of stage 0 (data replica 1)");
}

} // namespace troupe::norm_meeting_test
