// SPDX-License-Identifier: BSD-3-Clause
// Partitioners and the costs of their kinds, beside plans and optima of another
// program: its dynamic programmes, integer programmes and enumerations.

#include "planner/graph.hpp"
#include "tests/dice.hpp"
#include "tests/planner/judged_cases.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace troupe::partitions_test {

using namespace planner;
using json = judged_cases::json;

/// Cases of a file with graphs put in, without those of another kind or name.
std::vector<json> cases_of(const std::string& file, const std::string& kind) {
  std::vector<json> result;
  for (auto problem : judged_cases::cases_of(file)) {
    if (problem.at("kind") != kind)
      continue;
    if (problem.contains("graph_file")) {
      const auto graph = problem.at("graph_file").get<std::string>();
      problem["graph"] = judged_cases::cases_of(
        graph.substr(0, graph.size() - std::string{".json"}.size()));
      problem.erase("graph_file");
    }
    result.push_back(std::move(problem));
  }
  return result;
}

any_problem problem_of(const json& from) {
  const auto parsed = parse_case(from.dump());
  INFO((parsed ? "" : parsed.error()));
  REQUIRE(parsed);
  return parsed->content;
}

std::vector<pipedream_stage> pipedream_stages(const json& from) {
  std::vector<pipedream_stage> result;
  for (const auto& stage : from)
    result.push_back({stage.at("operators").get<std::vector<int>>(),
                      stage.at("replicas").get<int>(),
                      stage.contains("inner") ? pipedream_stages(stage.at("inner"))
                                              : std::vector<pipedream_stage>{}});
  return result;
}

any_plan plan_of(const std::string& kind, const json& from) {
  if (kind == "pipedream")
    return pipedream_plan{pipedream_stages(from)};
  if (kind == "tarnawski") {
    tarnawski_plan result;
    for (const auto& part : from)
      result.parts.push_back(
        {part.at("device") == "cpu", part.at("operators").get<std::vector<int>>()});
    return result;
  }
  if (kind == "piper") {
    piper_plan result;
    for (const auto& stage : from)
      result.stages.push_back({stage.at("operators").get<std::vector<int>>(),
                               stage.at("tensor").get<int>(),
                               stage.at("replicas").get<int>(),
                               stage.at("options").get<std::vector<std::string>>()});
    return result;
  }
  if (kind == "alpa") {
    alpa_plan result;
    for (const auto& stage : from)
      result.stages.push_back(
        {stage.at("first").get<int>(), stage.at("last").get<int>(),
         stage.at("submesh").get<int>(), stage.at("config").get<int>()});
    return result;
  }
  dapple_plan result;
  for (const auto& stage : from)
    result.stages.push_back({stage.at("first").get<int>(), stage.at("last").get<int>(),
                             stage.at("devices").get<std::vector<int>>()});
  return result;
}

/// The planner that answers a case exactly.
std::string planner_of(const json& problem) {
  const auto kind = problem.at("kind").get<std::string>();
  if (kind == "tarnawski" && problem.at("split") != "pipeline")
    return "tarnawski_ip";
  return kind;
}

/// Whether an answer is as good as the reference's: its optimum, or its best known
/// load.
bool is_best(const json& problem, const json& answer, double within) {
  const auto& expected = problem.at("expected");
  if (expected.contains("at_most"))
    return answer.at("cost").get<double>()
           <= expected.at("at_most").get<double>() * (1 + 1e-9);
  if (expected.at("cost").is_null() || answer.at("cost").is_null())
    return expected.at("cost") == answer.at("cost");
  const double optimum = expected.at("cost").get<double>();
  const double found = answer.at("cost").get<double>();
  return found <= optimum * within * (1 + 1e-9) && found >= optimum * (1 - 1e-6);
}

TEST_CASE("costs of partitions are those of the reference", "[planner]") {
  const std::string kind =
    GENERATE("pipedream", "tarnawski", "piper", "alpa", "dapple");
  const std::string file = GENERATE("own", "real");
  int judged_plans = 0;
  for (const auto& problem : cases_of(file == "own" ? kind : file, kind)) {
    INFO(problem.at("name"));
    const auto& expected = problem.at("expected");
    if (expected.at("plan").is_null())
      continue;
    const auto paid = judge(problem_of(problem), plan_of(kind, expected.at("plan")));
    INFO((paid ? "" : paid.error()));
    REQUIRE(paid);
    const auto cost = expected.value("cost", expected.value("at_most", json{}));
    CHECK(judged_cases::is_near(*paid, cost.get<double>()));
    ++judged_plans;
  }
  CHECK((judged_plans > 0 || file == "real"));
}

TEST_CASE("partitioners find the optimum", "[planner]") {
  const std::string kind =
    GENERATE("pipedream", "tarnawski", "piper", "alpa", "dapple");
  const std::string file = GENERATE("own", "real");
  for (const auto& problem : cases_of(file == "own" ? kind : file, kind)) {
    INFO(problem.at("name"));
    const auto answer = judged_cases::asked(problem, planner_of(problem));
    const double within = kind == "dapple" ? 1.05 : 1;
    CHECK(is_best(problem, answer, within));
    if (answer.at("cost").is_null())
      continue;
    const auto paid = judge(problem_of(problem), plan_of(kind, answer.at("plan")));
    REQUIRE(paid);
    CHECK(judged_cases::is_near(*paid, answer.at("cost").get<double>()));
  }
}

TEST_CASE("DAPPLE's estimate has the reference's terms", "[planner]") {
  const auto cases = cases_of("dapple", "dapple_latency");
  REQUIRE(cases.size() == 12);
  for (const auto& problem : cases) {
    INFO(problem.at("name"));
    const auto answer = judged_cases::asked(problem, "dapple_latency");
    const auto& expected = problem.at("expected");
    CHECK(answer.at("pivot") == expected.at("pivot"));
    for (const auto* const term : {"warm_up", "steady", "end", "cost"})
      CHECK(judged_cases::is_near(answer.at(term).get<double>(),
                                  expected.at(term).get<double>()));
  }
}

TEST_CASE("an enumeration finds the reference's optimum", "[planner]") {
  const std::string kind = GENERATE("pipedream", "piper", "alpa");
  for (const auto& problem : cases_of(kind, kind)) {
    INFO(problem.at("name"));
    if (kind == "pipedream" && problem.at("levels").size() > 1)
      continue;
    CHECK(is_best(problem, judged_cases::asked(problem, "exhaustive"), 1));
  }
}

TEST_CASE("no baseline is better than the optimum", "[planner]") {
  const std::string kind = GENERATE("pipedream", "tarnawski", "piper", "dapple");
  const std::string baseline = GENERATE("uniform", "parameters", "mincut");
  int plans = 0;
  for (const auto& problem : cases_of(kind, kind)) {
    INFO(problem.at("name"));
    const auto answer = judged_cases::asked(problem, baseline);
    if (answer.at("cost").is_null())
      continue;
    ++plans;
    REQUIRE(!problem.at("expected").at("cost").is_null());
    CHECK(answer.at("cost").get<double>()
          >= problem.at("expected").at("cost").get<double>() * (1 - 1e-9));
    const auto paid = judge(problem_of(problem), plan_of(kind, answer.at("plan")));
    REQUIRE(paid);
    CHECK(judged_cases::is_near(*paid, answer.at("cost").get<double>()));
  }
  CHECK(plans > 0);
}

TEST_CASE("each split of a graph has its own optimum", "[planner]") {
  // Loads by an enumeration of another program.
  tarnawski_problem problem{
    .edges = {{0, 2}, {0, 4}, {0, 5}, {1, 2}, {1, 3}, {1, 4}, {2, 3}},
    .accelerators = 2,
    .memory = 99};
  const double times[] = {8, 11, 4, 9, 10, 10}, transfers[] = {1, 1, 0, 1, 0, 0};
  for (std::size_t o = 0; o < 6; ++o)
    problem.operators.push_back(
      {.accelerator = times[o], .cpu = 1000, .size = 1, .transfer = transfers[o]});
  const auto load_by = [&](const char* planner, tarnawski_split split) {
    problem.split = split;
    const auto found = search(*parse_planner(planner), problem);
    REQUIRE(found);
    CHECK_FALSE(found->out_of_time);
    return *found->cost;
  };
  CHECK(load_by("tarnawski", tarnawski_split::pipeline) == 31);
  CHECK(load_by("tarnawski_ip", tarnawski_split::contiguous) == 30);
  CHECK(load_by("tarnawski_ip", tarnawski_split::any) == 29);
  for (const auto& [split, load] : {std::pair{tarnawski_split::pipeline, 31},
                                    {tarnawski_split::contiguous, 30},
                                    {tarnawski_split::any, 29}})
    CHECK(load_by("exhaustive", split) == load);
}

// A chain of sizes 6, 5, 5, 4 and 0 fits two devices of 10 in one way: not as a
// pipeline, whose load would be the unit of the solver's absolute tolerances.
TEST_CASE("times of unused devices hide no difference of others", "[planner]") {
  dice random{11};
  for (int count = 0; count < 20; ++count) {
    tarnawski_problem problem{.split = tarnawski_split::any,
                              .accelerators = 2,
                              .cpus = count % 2,
                              .memory = 10};
    for (const int size : {6, 5, 5, 4, 0, 0, 0})
      problem.operators.push_back({.accelerator = random.number(1000, 1100) / 7.,
                                   .cpu = 1e12,
                                   .size = double(size),
                                   .transfer = random.number(0, 9) / 7.});
    for (int o = 1; o < 7; ++o)
      problem.edges.push_back({o - 1, o});
    const auto optimum = search(*parse_planner("exhaustive"), problem);
    const auto found = search(*parse_planner("tarnawski_ip:seconds=600"), problem);
    REQUIRE((optimum && found));
    CHECK_FALSE(found->out_of_time);
    CHECK(judged_cases::is_near(*found->cost, *optimum->cost));
  }
}

TEST_CASE("times that no load can have hide no better plan", "[planner]") {
  constexpr double never = 1e30;
  tarnawski_problem problem{
    .split = tarnawski_split::any, .accelerators = 1, .cpus = 1, .memory = 23.8};
  problem.operators = {
    {.accelerator = 1, .cpu = 5, .size = 5, .transfer = 2, .accelerator_can = false},
    {.accelerator = 5, .cpu = 7, .size = 9, .transfer = 9},
    {.accelerator = 4, .cpu = 8, .size = 9, .transfer = 1},
    {.accelerator = never, .cpu = 4, .size = 9, .transfer = 9},
    {.accelerator = 1, .cpu = never, .size = 2, .transfer = never}};
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 2}, {2, 3}, {2, 4}})
    problem.edges.push_back({from, to});
  const auto found = search(*parse_planner("tarnawski_ip"), problem);
  REQUIRE(found);
  CHECK(found->cost == 13);
}

// A sum with 1e30 loses each smaller transfer.
TEST_CASE("transfers that no load can have hide no better pipeline", "[planner]") {
  constexpr double never = 1e30;
  dice random{3};
  int fitting = 0;
  for (int count = 0; count < 60; ++count) {
    tarnawski_problem problem{.accelerators = 2, .cpus = 1, .memory = 12};
    for (int o = 0; o < 7; ++o)
      problem.operators.push_back(
        {.accelerator = double(random.number(1, 9)),
         .cpu = double(random.number(5, 30)),
         .size = double(random.number(1, 6)),
         .transfer = random.number(0, 2) == 0 ? never : random.number(1, 5) / 7.});
    for (int from = 0; from < 7; ++from)
      for (int to = from + 1; to < 7; ++to)
        if (random.number(0, 2) == 0)
          problem.edges.push_back({from, to});
    const auto optimum = search(*parse_planner("exhaustive"), problem);
    const auto found = search(*parse_planner("tarnawski"), problem);
    REQUIRE((optimum && found));
    REQUIRE(optimum->cost.has_value() == found->cost.has_value());
    if (!found->cost)
      continue;
    CHECK(judged_cases::is_near(*found->cost, *optimum->cost));
    fitting += *optimum->cost < never;
  }
  CHECK(fitting > 20);
}

TEST_CASE("a pipeline tells of backward operators without a forward one", "[planner]") {
  tarnawski_problem problem{.accelerators = 2, .memory = 9};
  problem.operators = {{.accelerator = 1, .colour = 1},
                       {.accelerator = 2, .backward = true, .colour = 1}};
  problem.edges = {{0, 1}};
  CHECK(search(*parse_planner("tarnawski"), problem)->remark.empty());
  problem.operators[1].colour.reset();
  const auto found = search(*parse_planner("tarnawski"), problem);
  CHECK(to_json(*found).at("remark")
        == "backward operators without a forward one of their colour keep the order of "
           "their edges: another order may cost less");
}

TEST_CASE("memory may have a large unit", "[planner]") {
  tarnawski_problem problem{
    .split = tarnawski_split::any, .accelerators = 2, .memory = 0.6};
  for (int o = 0; o < 8; ++o)
    problem.operators.push_back(
      {.accelerator = 1. + o, .cpu = 1e6, .size = 0.14, .transfer = 0});
  const auto found = search(*parse_planner("tarnawski_ip:seconds=600"), problem);
  REQUIRE(found);
  CHECK_FALSE(found->out_of_time);
  CHECK(found->cost == 18); // half of 36
  problem.memory = 0.5;     // three on each
  const auto none = search(*parse_planner("tarnawski_ip:seconds=600"), problem);
  REQUIRE(none);
  CHECK_FALSE(none->best);
}

// Tolerances of solvers are millionths; memory is counted in bytes.
TEST_CASE("parts may fill the memory to the last byte, and exceed it by none",
          "[planner]") {
  constexpr double part = 1 << 30;
  tarnawski_problem problem{
    .split = tarnawski_split::any, .accelerators = 2, .cpus = 1};
  for (int o = 0; o < 4; ++o)
    problem.operators.push_back(
      {.accelerator = o < 2 ? 1. : 10, .cpu = 50, .size = o < 2 ? part : 3 * part + o});
  problem.memory = 4 * part + 3;
  CHECK(search(*parse_planner("tarnawski_ip"), problem)->cost == 11);
  problem.memory -= 1; // no operator is beside the last
  const auto found = search(*parse_planner("tarnawski_ip"), problem);
  REQUIRE(found);
  CHECK(found->cost == 50);
  CHECK_FALSE(found->out_of_time);
}

TEST_CASE("an integer programme whose time is over says so", "[planner]") {
  // A schedule of 90 jobs on 9 equal machines: no solver proves it within a second. As
  // a chain the jobs have a pipeline, which is the answer however busy the machine is.
  tarnawski_problem problem{
    .split = tarnawski_split::any, .accelerators = 9, .memory = 1000};
  for (int o = 0; o < 90; ++o)
    problem.operators.push_back({.accelerator = 1000 + 37 * o % 101 + o / 1000.,
                                 .cpu = 1e6,
                                 .size = 1,
                                 .transfer = 0});
  for (int o = 1; o < 90; ++o)
    problem.edges.push_back({o - 1, o});
  const auto found = search(*parse_planner("tarnawski_ip:seconds=1"), problem);
  REQUIRE(found);
  CHECK(found->out_of_time);
  CHECK(to_json(*found).at("out_of_time") == true);
  CHECK(judge(problem, *found->best).value() == found->cost);
  // Two operators fit a device, 61 do not fit 30: a search does not prove that soon.
  problem.edges.clear();
  problem.operators.resize(61);
  problem.accelerators = 30;
  for (auto& o : problem.operators)
    o.size = 340;
  const auto none = search(*parse_planner("tarnawski_ip:seconds=1"), problem);
  REQUIRE_FALSE(none);
  CHECK(none.error()
        == "planner tarnawski_ip found no plan in 1 s: give more seconds=, or "
           "take a smaller case");
}

TEST_CASE("Alpa's stages have memory for all later stages", "[planner]") {
  // Two stages of a second each would be faster, but the first has no memory for the
  // second one's microbatches.
  alpa_problem problem{
    .mesh = {1, 2},
    .layers = 2,
    .microbatches = 4,
    .submeshes = {{1, 1}, {1, 2}},
    .costs = {{0, 0, 0, 0, 1, 0}, {1, 1, 0, 0, 1, 0}, {0, 1, 1, 0, 5, 0}}};
  const auto best = [&] { return *search(*parse_planner("alpa"), problem)->cost; };
  CHECK(best() == 20);
  problem.costs.front().most_later = 1;
  CHECK(best() == 5);
}

TEST_CASE("plans that break a rule have no cost", "[planner]") {
  pipedream_problem problem{.operators = {{"a", 1, 1, 8, 8}, {"b", 1, 1, 8, 8}},
                            .edges = {{0, 1}},
                            .levels = {{2, 1}}};
  const auto error = [&](std::vector<pipedream_stage> stages) {
    const auto paid = cost(problem, pipedream_plan{std::move(stages)});
    return paid ? "" : paid.error();
  };
  CHECK(error({{{0}, 1, {}}, {{1}, 1, {}}}).empty());
  CHECK(error({{{1}, 1, {}}, {{0}, 1, {}}}) == "edge 0-1 leads back");
  CHECK(error({{{0, 1}, 1, {}}}) == "not all 2 workers of level 0 are used");
  CHECK(error({{{0}, 2, {}}}) == "an operator has no place");
  CHECK(error({{{0, 0}, 2, {}}}) == "operator 0 has two places");
  CHECK(error({{{0, 2}, 2, {}}}) == "there is no operator 2");
  problem.memory = 31; // the first of two stages keeps two versions of 16 bytes
  CHECK(error({{{0}, 1, {}}, {{1}, 1, {}}})
        == "stage 0 needs more memory than there is");
  problem.memory = 32;
  CHECK(error({{{0}, 1, {}}, {{1}, 1, {}}}).empty());
  CHECK(error({{{0, 1}, 2, {}}}).empty());
  problem.straight = true;
  CHECK_FALSE(error({{{0, 1}, 2, {}}}).empty());
}

TEST_CASE("ideals of a diamond are those that its picture has", "[planner]") {
  // 0 -> 1 -> 3, 0 -> 2 -> 3
  const auto ideals = ideals_of(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}, 100);
  REQUIRE(ideals);
  std::vector<std::vector<int>> members;
  for (const auto& ideal : *ideals)
    members.push_back(ideal.members());
  CHECK(
    members
    == std::vector<std::vector<int>>{{}, {0}, {0, 1}, {0, 2}, {0, 1, 2}, {0, 1, 2, 3}});
  CHECK_FALSE(ideals_of(4, {}, 15));
  CHECK(ideals_of(4, {}, 16)->size() == 16);
  CHECK(ideals_of(70, {}, 1000) == std::nullopt);
  std::vector<edge> chain;
  for (int o = 0; o + 1 < 130; ++o)
    chain.push_back({o, o + 1});
  CHECK(ideals_of(130, chain, 1000)->size() == 131);
}

} // namespace troupe::partitions_test
