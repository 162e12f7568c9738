// SPDX-License-Identifier: BSD-3-Clause
// The catalog of planners: names, options and kinds.

#include "tests/planner/judged_cases.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

namespace troupe::catalog_test {

using namespace planner;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("planners have the names that the reference calls", "[planner]") {
  std::set<std::string> names;
  for (const auto& row : catalog()) {
    CHECK(names.insert(std::string{row.name}).second);
    CHECK(row.summary.ends_with('.'));
    CHECK_FALSE(row.methods.empty());
  }
  for (const auto* const name :
       {"pipedream", "piper", "alpa", "dapple", "dapple_latency", "mcmc",
        "policy_gradient", "alpa_intra", "gspmd", "tarnawski", "tarnawski_ip", "tofu",
        "bayes", "learned", "exhaustive", "uniform", "parameters", "mincut"})
    CHECK(names.contains(name));
}

TEST_CASE("options of planners are read", "[planner]") {
  const auto chosen = parse_planner("mcmc:seed=7,chains=2");
  REQUIRE(chosen);
  CHECK(chosen->row->name == "mcmc");
  CHECK(chosen->options.seed == 7);
  CHECK(chosen->options.chains == 2);
  CHECK(chosen->options.proposals == 2000);
}

TEST_CASE("a wrong planner or option has a sentence with the allowed ones",
          "[planner]") {
  const auto mistake = [](const std::string& text) {
    const auto chosen = parse_planner(text);
    return chosen ? "" : chosen.error();
  };
  CHECK_THAT(mistake("alpha"),
             ContainsSubstring("there is no planner 'alpha': --planner takes one of "
                               "pipedream, "));
  CHECK(mistake("alpa:seed=1")
        == "planner alpa has no option 'seed': give its name alone");
  CHECK_THAT(mistake("mcmc:sed=1"),
             ContainsSubstring("give seed=, chains=, proposals="));
  CHECK(mistake("mcmc:chains=0")
        == "'chains=0' is out of range: chains= takes a whole number from 1 to 1000");
  CHECK_FALSE(mistake("mcmc:seed=1x").empty());
  CHECK_FALSE(mistake("mcmc:seed").empty());
  CHECK_FALSE(mistake("mcmc:").empty());
  CHECK_FALSE(mistake("").empty());
}

TEST_CASE("a planner refuses kinds that it does not answer", "[planner]") {
  const auto problem = parse_case(judged_cases::cases_of("alpa").front().dump());
  const auto found = search(*parse_planner("tofu"), problem->content);
  REQUIRE_FALSE(found);
  CHECK(found.error()
        == "planner tofu does not answer a case of kind alpa: --planner takes alpa, "
           "exhaustive, uniform");
}

TEST_CASE("every planner answers its kinds with plans that the judge accepts",
          "[planner]") {
  for (const std::string file :
       {"pipedream", "tarnawski", "piper", "alpa", "dapple", "placement", "intra"})
    for (const auto& row : catalog()) {
      const auto problem = parse_case(judged_cases::cases_of(file).front().dump());
      REQUIRE(problem);
      if (!row.method_for(kind_of(problem->content)) || row.name == "learned")
        continue;
      INFO(file << " " << row.name);
      const auto found = search({&row, {}}, problem->content);
      if (!found) {
        CHECK_FALSE(found.error().empty());
        continue;
      }
      REQUIRE(found->cost.has_value() == found->best.has_value());
      if (!found->best)
        continue;
      CHECK(*found->cost > 0);
      const auto paid = judge(problem->content, *found->best);
      INFO((paid ? "" : paid.error()));
      CHECK(paid);
    }
}

TEST_CASE("a plan of another kind has no cost", "[planner]") {
  const auto problem = parse_case(judged_cases::cases_of("alpa").front().dump());
  CHECK_FALSE(judge(problem->content, any_plan{intra_plan{}}));
}

} // namespace troupe::catalog_test
