// SPDX-License-Identifier: BSD-3-Clause
// Markov chains and the policy gradient, against optima that are known.

#include "tests/planner/judged_cases.hpp"
#include "tests/planner/small_cases.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::assignment_searches_test {

using namespace troupe::judged_cases;

#ifdef TROUPE_SANITIZED
constexpr int seeds = 1;
#else
constexpr int seeds = 20;
#endif

// The part of cases and seeds in which a planner comes near enough to the optimum.
double good_part(const std::string& file, const std::string& planner, double within) {
  int good = 0, count = 0;
  for (const auto& problem : cases_of(file))
    for (int seed = 0; seed < seeds; ++seed) {
      INFO(problem.at("name") << ", seed " << seed);
      const auto answer = asked(problem, planner + ":seed=" + std::to_string(seed));
      good += is_good(problem, answer, optimum_of(problem), within);
      ++count;
    }
  return static_cast<double>(good) / count;
}

TEST_CASE("Markov chains place operators within 2% of the optimum in 95% of seeds") {
  CHECK(good_part("placement", "mcmc", 1.02) >= 0.95);
}

TEST_CASE("Markov chains choose strategies within 2% of the optimum in 95% of seeds") {
  CHECK(good_part("intra", "mcmc", 1.02) >= 0.95);
}

TEST_CASE("a policy places operators within 5% of the optimum in 95% of seeds") {
  CHECK(good_part("placement", "policy_gradient", 1.05) >= 0.95);
}

TEST_CASE("searches of small problems at random come near the best of all plans") {
  dice random{49};
  int count = 0, good_chains = 0, good_policies = 0, good_strategies = 0;
  for (; count < (seeds == 1 ? 5 : 40); ++count) {
    const auto placement = random_placement(random);
    const double optimum = least_cost(placement);
    good_chains += is_good(placement, asked(placement, "mcmc"), optimum, 1.02);
    good_policies +=
      is_good(placement, asked(placement, "policy_gradient"), optimum, 1.05);
    const auto strategies = random_strategies(random);
    good_strategies +=
      is_good(strategies, asked(strategies, "mcmc"), least_cost(strategies), 1.02);
  }
  CHECK(good_chains >= 0.95 * count);
  CHECK(good_policies >= 0.95 * count);
  CHECK(good_strategies >= 0.95 * count);
}

// Operators of 5 and devices of 9 and 6: only one assignment of three operators fits.
TEST_CASE("searches find the only placement that memory allows") {
  json problem{{"name", "tight"}, {"kind", "placement"}};
  for (const int memory : {4, 6, 5})
    problem["operators"].push_back(
      {{"seconds", {10, 10}}, {"bytes", 100}, {"memory", memory}});
  problem["edges"] = {{0, 1}, {1, 2}};
  problem["memory"] = {9, 6};
  problem["bandwidth"] = {{1, 1}, {1, 1}};
  problem["latency"] = {{0, 1}, {1, 0}};
  for (const auto* planner : {"mcmc", "policy_gradient"})
    CHECK(asked(problem, planner).at("plan") == json{0, 1, 0});
  problem["memory"] = {9, 5};
  for (const auto* planner : {"mcmc", "policy_gradient"})
    CHECK(asked(problem, planner) == json{{"cost", nullptr}});
}

TEST_CASE("a search with one proposal or one sample still answers, or nothing fits") {
  const auto problem = cases_of("placement").at(0);
  for (const auto* planner : {"mcmc:chains=1,proposals=1", "policy_gradient:samples=1"})
    is_good(problem, asked(problem, planner), optimum_of(problem), unreachable);
}

// A policy that has learned draws good placements more often than one that has not.
TEST_CASE("a policy learns: most late samples of few are better than random ones") {
  int better = 0;
  dice random{7};
  const auto problems = cases_of("placement");
  for (const std::size_t index : {0, 6, 9}) {
    const auto& problem = problems.at(index);
    const auto devices = static_cast<int>(problem.at("memory").size());
    for (int seed = 0; seed < 4; ++seed) {
      double least = unreachable;
      for (int sample = 0; sample < 400; ++sample) {
        choices drawn;
        for (std::size_t i = 0; i < problem.at("operators").size(); ++i)
          drawn.push_back(random.number(0, devices - 1));
        least = std::min(least, placement_cost(problem, drawn));
      }
      const auto answer =
        asked(problem, "policy_gradient:samples=400,seed=" + std::to_string(seed));
      better += answer.at("cost").get<double>() <= least;
    }
  }
  CHECK(better >= 10); // of 12
}

} // namespace troupe::assignment_searches_test
