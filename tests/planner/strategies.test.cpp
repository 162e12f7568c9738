// SPDX-License-Identifier: BSD-3-Clause
// Exact searches for strategies, and strategies that follow from matrix products.

#include "planner/kinds/stated.hpp"
#include "tests/planner/judged_cases.hpp"
#include "tests/planner/small_cases.hpp"

#include <catch2/catch_test_macros.hpp>

#include <variant>

namespace troupe::strategies_test {

using namespace troupe::judged_cases;

std::vector<std::string> named(const json& problem, const json& answer) {
  std::vector<std::string> names;
  for (const auto& strategy : answer.at("plan")) {
    const auto& node = problem.at("nodes").at(names.size());
    names.push_back(
      node.at("strategies").at(strategy.get<std::size_t>()).get<std::string>());
  }
  return names;
}

TEST_CASE("an integer programme finds the optimum of every case") {
  for (const auto& problem : cases_of("intra")) {
    INFO(problem.at("name"));
    CHECK(is_good(problem, asked(problem, "alpa_intra"), optimum_of(problem), 1));
  }
}

TEST_CASE("exact searches find the best of all strategies of small problems") {
  dice random{3};
  for (int count = 0; count < 200; ++count) {
    const auto problem = random_strategies(random);
    INFO(problem.dump());
    const double optimum = least_cost(problem);
    CHECK(is_good(problem, asked(problem, "alpa_intra"), optimum, 1));
    CHECK(is_good(problem, asked(problem, "tofu"), optimum, 1)); // one axis
  }
}

// Tolerances of solvers are absolute: costs in the unit of the largest would be 0.
TEST_CASE("strategies that cost a billion times more hide no difference of others") {
  dice random{5};
  for (int count = 0; count < 40; ++count) {
    auto problem = random_strategies(random);
    auto& dear = problem["nodes"].back();
    dear["strategies"].push_back("never");
    dear["cost"].push_back(1e12);
    dear["memory"].push_back(1);
    for (auto& edge : problem["edges"])
      if (edge["to"] == problem["nodes"].size() - 1)
        for (auto& row : edge["cost"])
          row.push_back(1e12);
    INFO(problem.dump());
    const double optimum = least_cost(problem);
    CHECK(is_good(problem, asked(problem, "alpa_intra"), optimum, 1));
  }
}

// Equal but for millionths.
double nearly_one(dice& random) {
  return (random.number(0, 3) == 0 ? 0 : 1) + random.number(0, 20) * 1e-6;
}

// A power of ten, or 0.
double of_any_size(dice& random) {
  return random.number(0, 4) == 0 ? 0 : std::pow(10., random.number(-15, 30));
}

// One of four numbers is far larger than the others.
double with_large_ones(dice& random) {
  return random.number(0, 3) == 0 ? 1e7 * random.number(1, 9) : random.real(0, 1);
}

TEST_CASE("an integer programme is right where costs and memory have many sizes") {
#ifdef TROUPE_SANITIZED
  constexpr int cases = 150; // a process of the solver takes long to begin
#else
  constexpr int cases = 1500;
#endif
  dice random{17};
  int fitting = 0;
  for (int count = 0; count < cases; ++count) {
    auto problem = random_strategies(random);
    double (*const numbers[])(dice&) = {nearly_one, of_any_size, with_large_ones};
    const auto number = numbers[count % 3];
    double least = 0, most = 0;
    for (auto& node : problem["nodes"]) {
      for (auto& cost : node["cost"])
        cost = number(random);
      for (auto& bytes : node["memory"])
        bytes = number == nearly_one ? random.number(0, 10)
                                     : std::pow(10., random.number(-10, 25));
      const auto needs = node["memory"].get<std::vector<double>>();
      least += *std::ranges::min_element(needs);
      most += *std::ranges::max_element(needs);
    }
    for (auto& edge : problem["edges"])
      for (auto& row : edge["cost"])
        for (auto& cost : row)
          cost = number(random);
    problem["memory"] =
      random.number(0, 2) == 0 ? json(nullptr) : json(random.real(least, most));
    if (count % 7 == 0)
      problem["memory"] = count % 2 == 0 ? least : least * 1.1;
    INFO(problem.dump());
    const auto optimum = asked(problem, "exhaustive").at("cost");
    const auto found = asked(problem, "alpa_intra");
    REQUIRE(optimum.is_null() == found.at("cost").is_null());
    CHECK_FALSE((found.contains("out_of_time") || found.contains("remark")));
    if (optimum.is_null())
      continue;
    CHECK(is_good(problem, found, optimum, 1 + 1e-7));
    ++fitting;
  }
  CHECK(fitting > cases / 3);
}

json without_edges(const std::vector<std::vector<double>>& costs,
                   const std::vector<std::vector<double>>& memory) {
  json problem{{"name", "small"}, {"kind", "intra"}, {"edges", json::array()}};
  for (std::size_t node = 0; node < costs.size(); ++node)
    problem["nodes"].push_back(
      {{"name", "operator"},
       {"strategies", std::vector<std::string>(costs[node].size(), "s")},
       {"cost", costs[node]},
       {"memory", memory[node]}});
  return problem;
}

// CBC 2.10 cut the best plan off the row of whole needs in the first case. Fuzzing
// beside the enumeration found all of them.
TEST_CASE("an integer programme keeps the best plan where the solver may lose it") {
  auto cut_off =
    without_edges({{0}, {20, 0}, {0, 30, 0}, {0}}, {{4}, {7, 10}, {8, 3, 6}, {1}});
  cut_off["memory"] = 19;
  CHECK(asked(cut_off, "alpa_intra").at("cost") == 20);
  auto exact_fit = without_edges({{0, 1}, {0, 1}}, {{0.1, 0.2}, {0.2, 0.3}});
  exact_fit["memory"] = 0.1 + 0.2;
  CHECK(asked(exact_fit, "alpa_intra").at("cost") == 0);
  auto near_fit = without_edges({{0}, {0, 3}, {0, 4}}, {{1e23}, {1e10, 1}, {1e10, 1}});
  near_fit["memory"] = 1e23;
  CHECK(asked(near_fit, "alpa_intra").at("cost") == 7);
  auto far_too_large = without_edges({{1, 0}, {1}}, {{0, 1e21}, {0}});
  far_too_large["memory"] = 0.001;
  CHECK(asked(far_too_large, "alpa_intra").at("cost") == 2);
  CHECK(asked(without_edges({{1, 1e26}, {1, 1e26}}, {{0, 0}, {0, 0}}), "alpa_intra")
          .at("cost")
        == 2);
}

// All plans pay a million here, and differ by units.
TEST_CASE("a cost that all plans pay hides no difference") {
  dice random{6};
  for (int count = 0; count < 40; ++count) {
    auto problem = random_strategies(random);
    for (auto& cost : problem["nodes"][0]["cost"])
      cost = cost.get<double>() + 1e7;
    INFO(problem.dump());
    const double optimum = least_cost(problem);
    CHECK(is_good(problem, asked(problem, "alpa_intra"), optimum, 1));
  }
}

TEST_CASE("edges between the same operators count each") {
  json problem{{"name", "twice"}, {"kind", "intra"}};
  for (const auto* name : {"a", "b"})
    problem["nodes"].push_back({{"name", name},
                                {"strategies", {"x", "y"}},
                                {"cost", {name[0] == 'a' ? 0 : 5, 4}},
                                {"memory", {1, 1}}});
  const json edge{{"from", 0}, {"to", 1}, {"cost", {{9, 3}, {9, 0}}}};
  problem["edges"] = {edge, edge};
  CHECK(asked(problem, "alpa_intra").at("plan") == json{1, 1}); // 8, below 4 + 2 * 3
  CHECK(asked(problem, "tofu").at("plan") == json{1, 1});
}

// Tolerances of solvers are millionths; memory is counted in bytes.
TEST_CASE("strategies may fill the memory to the last byte, and exceed it by none") {
  constexpr double part = 1 << 30;
  json problem{{"name", "bytes"}, {"kind", "intra"}, {"edges", json::array()}};
  for (int i = 0; i < 3; ++i)
    problem["nodes"].push_back({{"name", "op"},
                                {"strategies", {"fast", "small"}},
                                {"cost", {1 + i, 5 + 3 * i}},
                                {"memory", {16 * part + i, 4 * part}}});
  for (const auto* planner : {"alpa_intra", "tofu"}) {
    problem["memory"] = 36 * part + 3; // the last two operators are fast
    CHECK(asked(problem, planner).at("plan") == json{1, 0, 0});
    problem["memory"] = 36 * part + 2; // the first and the last
    CHECK(asked(problem, planner).at("plan") == json{0, 1, 0});
    problem["memory"] = 12 * part;
    CHECK(asked(problem, planner).at("plan") == json{1, 1, 1});
    problem["memory"] = 12 * part - 1;
    CHECK(asked(problem, planner) == json{{"cost", nullptr}});
  }
}

TEST_CASE("costs that follow from matrix products are the stated ones") {
  int count = 0;
  for (const auto& problem : cases_of("intra")) {
    if (!problem.contains("stated"))
      continue;
    ++count;
    INFO(problem.at("name"));
    json alone = problem;
    alone.erase("nodes");
    alone.erase("edges");
    const auto parsed = planner::parse_case(alone.dump());
    REQUIRE(parsed);
    const auto& built = std::get<planner::intra_problem>(parsed->content);
    REQUIRE(built.nodes.size() == problem.at("nodes").size());
    for (std::size_t n = 0; n < built.nodes.size(); ++n) {
      const auto& node = problem.at("nodes")[n];
      REQUIRE(node.at("strategies") == json(built.nodes[n].strategies));
      for (std::size_t s = 0; s < node.at("cost").size(); ++s) {
        CHECK(is_near(built.nodes[n].cost[s], node.at("cost")[s], 1e-12));
        CHECK(is_near(built.nodes[n].memory[s], node.at("memory")[s], 1e-12));
      }
    }
    REQUIRE(built.edges.size() == problem.at("edges").size());
    for (std::size_t e = 0; e < built.edges.size(); ++e) {
      const auto& matrix = problem.at("edges")[e].at("cost");
      for (std::size_t i = 0; i < matrix.size(); ++i)
        for (std::size_t j = 0; j < matrix[i].size(); ++j)
          CHECK(is_near(built.edges[e].cost[i][j], matrix[i][j], 1e-12));
    }
  }
  CHECK(count == 5);
}

// Shoeybi et al., "Megatron-LM", 2019: the first matrix by columns, the second by rows.
TEST_CASE("published splits come out of matrix products alone") {
  const std::map<std::string, std::map<std::string, std::string>> published{
    {"megatron_mlp", {{"input", "-"}, {"up", "f"}, {"gelu", "f"}, {"down", "f"}}},
    {"megatron_attention",
     {{"query key value", "h"}, {"attention", "h"}, {"projection", "h"}}},
    {"data_parallel_mlp",
     {{"input", "m"}, {"up", "m"}, {"gelu", "m"}, {"down", "m"}, {"residual", "m"}}},
    {"expert_parallel",
     {{"tokens", "m"}, {"up", "e"}, {"down", "e"}, {"residual", "m"}}}};
  std::size_t count = 0;
  for (const auto& problem : cases_of("intra")) {
    const auto splits = published.find(problem.at("name").get<std::string>());
    if (splits == published.end())
      continue;
    ++count;
    json alone = problem;
    alone.erase("nodes");
    alone.erase("edges");
    const auto names = named(problem, asked(alone, "alpa_intra"));
    for (std::size_t n = 0; n < names.size(); ++n)
      if (const auto wanted =
            splits->second.find(problem.at("nodes")[n].at("name").get<std::string>());
          wanted != splits->second.end())
        CHECK(names[n] == wanted->second);
  }
  CHECK(count == published.size());
}

// Copies of a case on other meshes: the costs change, the form of strategies stays.
json on_mesh(json problem, const json& mesh, const json& bandwidth) {
  problem["stated"]["mesh"] = mesh;
  problem["stated"]["bandwidth"] = bandwidth;
  problem.erase("nodes");
  problem.erase("edges");
  const auto parsed = planner::parse_case(problem.dump());
  REQUIRE(parsed);
  const auto& built = std::get<planner::intra_problem>(parsed->content);
  for (const auto& node : built.nodes)
    problem["nodes"].push_back({{"name", node.name},
                                {"strategies", node.strategies},
                                {"cost", node.cost},
                                {"memory", node.memory}});
  for (const auto& edge : built.edges)
    problem["edges"].push_back(
      {{"from", edge.from}, {"to", edge.to}, {"cost", edge.cost}});
  return problem;
}

// The best for each axis after the former axes, by trying all plans.
double axis_by_axis(const json& problem) {
  const auto axes = problem.at("stated").at("mesh").size();
  const std::size_t nodes = problem.at("nodes").size();
  const auto letter = [&](std::size_t node, int strategy, std::size_t axis) {
    const std::string name =
      problem.at("nodes")[node].at("strategies")[static_cast<std::size_t>(strategy)];
    return name.at(2 * axis);
  };
  std::vector<std::string> chosen(nodes, std::string(axes, '-'));
  double least = unreachable;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::vector<choices> kept(nodes);
    for (std::size_t n = 0; n < nodes; ++n)
      for (int s = 0; s < std::ssize(problem.at("nodes")[n].at("cost")); ++s) {
        bool is_kept = true;
        for (std::size_t other = 0; other < axes; ++other)
          is_kept &= other == axis || letter(n, s, other) == chosen[n][other];
        if (is_kept)
          kept[n].push_back(s);
      }
    json small{{"kind", "intra"}};
    for (const auto& strategies : kept)
      small["nodes"].push_back({{"cost", strategies}});
    least = unreachable;
    choices best;
    for_each_plan(small, [&](const choices& picked) {
      choices plan;
      for (std::size_t n = 0; n < nodes; ++n)
        plan.push_back(kept[n][static_cast<std::size_t>(picked[n])]);
      const double cost = strategies_cost(problem, plan);
      if (cost < least * (1 - 1e-12) || best.empty()) {
        least = cost;
        best = plan;
      }
    });
    for (std::size_t n = 0; n < nodes; ++n)
      chosen[n][axis] = letter(n, best[n], axis);
  }
  return least;
}

TEST_CASE("Tofu's plan is the best axis by axis, and never below the optimum") {
  for (const auto& problem : cases_of("intra")) {
    if (!problem.contains("stated"))
      continue;
    INFO(problem.at("name"));
    const auto& expected = problem.at("expected");
    const auto answer = asked(problem, "tofu");
    const auto& halves =
      expected.contains("by_halves") ? expected.at("by_halves") : expected;
    CHECK(is_near(answer.at("cost"), halves.at("cost")));
    is_good(problem, answer, optimum_of(problem), unreachable);
    for (const auto& [mesh, bandwidth] :
         {std::pair{json{2, 2}, json{0x1p37, 0x1p34}},
          std::pair{json{2, 4}, json{0x1p33, 0x1p37}},
          std::pair{json{2, 2, 2}, json{0x1p37, 0x1p36, 0x1p35}}}) {
      const auto copy = on_mesh(problem, mesh, bandwidth);
      const auto halved = asked(copy, "tofu");
      CHECK(is_near(halved.at("cost"), axis_by_axis(copy)));
      const auto best = asked(copy, "alpa_intra");
      CHECK(halved.at("cost").get<double>()
            >= best.at("cost").get<double>() * (1 - 1e-9));
    }
  }
}

// One product of m x k and k x n on 4 devices, by hand.
TEST_CASE("a product pays for the sums that its split leaves open") {
  planner::stated_problem problem;
  problem.mesh = {{4, 1000}};
  problem.operations_per_second = 1e6;
  problem.sizes = {{'m', 8}, {'k', 16}, {'n', 32}};
  problem.operators = {{"product", {"mk", "kn"}, "mn", false, 1, 1, 0, "mkn"}};
  const auto built = planner::strategies_of(problem);
  REQUIRE(built.nodes.size() == 1);
  const auto& node = built.nodes[0];
  REQUIRE(node.strategies == std::vector<std::string>{"m", "k", "n", "-"});
  constexpr double work = 6 * 8 * 16 * 32 / 1e6, all_reduce = 2 * 3 / 4. * 2 / 1000;
  CHECK(is_near(node.cost[0], work / 4 + all_reduce * 16 * 32, 1e-12)); // the weight's
  CHECK(is_near(node.cost[1], work / 4 + all_reduce * 8 * 32, 1e-12));  // the output
  CHECK(is_near(node.cost[2], work / 4 + all_reduce * 8 * 16, 1e-12));  // the input's
  CHECK(is_near(node.cost[3], work, 1e-12));
  CHECK(node.memory
        == std::vector<double>{
          8 * 32 * 2 / 4. + 16 * 32 * 16, 8 * 32 * 2 + 16 * 32 * 16 / 4.,
          8 * 32 * 2 / 4. + 16 * 32 * 16 / 4., 8 * 32 * 2 + 16 * 32 * 16});
}

TEST_CASE("an index that the mesh does not divide is left out") {
  planner::stated_problem problem;
  problem.mesh = {{2, 1}, {4, 1}};
  problem.sizes = {{'m', 8}, {'k', 4}, {'n', 3}};
  problem.operators = {{"x", {"mkn"}, "mkn", true, {}, 1, 0, "mkn"}};
  CHECK(planner::strategies_of(problem).nodes[0].strategies
        == std::vector<std::string>{"m|m", "m|k", "m|-", "k|m", "k|-", "-|m", "-|k",
                                    "-|-"});
}

TEST_CASE("a broken case of strategies gets a sentence with its place") {
  const auto problem = cases_of("intra").at(0);
  json alone = problem;
  alone.erase("nodes");
  const auto mistake = [&](const std::function<void(json&)>& change) {
    json broken = alone;
    change(broken["stated"]);
    return mistake_of(broken);
  };
  CHECK(mistake_of(alone).empty());
  CHECK(mistake([](json& s) { s["operators"][1]["einsum"] = "mk,kz->mz"; })
        == "stated.operators[1].einsum has the index 'z', but 'sizes' has no such "
           "index");
  CHECK(mistake([](json& s) {
          s["operators"][1]["weight"] = 2;
        }).starts_with("stated.operators[1].weight "));
  CHECK(mistake([](json& s) {
          s["operators"][2]["allowed"] = "mq";
        }).starts_with("stated.operators[2].allowed has the index 'q'"));
  CHECK(mistake([](json& s) {
          s["edges"][4][2] = "k";
        }).starts_with("stated.edges[4][2] has an odd number"));
  CHECK(
    mistake([](json& s) { s["edges"][0][1] = 9; }).starts_with("stated.edges[0][1] "));
  CHECK(mistake([](json& s) {
          s["bandwidth"] = {1, 2};
        }).starts_with("stated.bandwidth "));
  CHECK(mistake([](json& s) {
          s["sizes"]["ab"] = 2;
        }).starts_with("stated.sizes.ab has the name 'ab'"));
  CHECK(mistake([](json& s) {
          s["mesh"] = json::array();
        }).starts_with("stated.mesh is empty"));
  json strange = problem;
  strange["nodes"][1]["strategies"][0] = "f|m";
  const auto parsed = planner::parse_case(strange.dump());
  REQUIRE(parsed);
  const auto found = planner::search(*planner::parse_planner("tofu"), parsed->content);
  REQUIRE(!found);
  CHECK(found.error().starts_with("operator 'up' has the strategy 'f|m'"));
}

} // namespace troupe::strategies_test
