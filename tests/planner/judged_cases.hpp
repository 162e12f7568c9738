// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Cases of placements, strategies, layouts and options in files, questions to planners,
// and a second, plain writing of the costs. The functions read a case's JSON alone.

#include "planner/case_file.hpp"
#include "planner/catalog.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::judged_cases {

using json = nlohmann::ordered_json;
using choices = std::vector<int>;

inline constexpr double unreachable = std::numeric_limits<double>::infinity();

/// The cases of a file of tests/planner/cases.
inline json cases_of(const std::string& name) {
  std::ifstream file{std::string{TROUPE_PLANNER_CASES} + "/" + name + ".json"};
  REQUIRE(file);
  return json::parse(file);
}

/// A planner's answer to a case, which loses the expected answer first.
inline json asked(json problem, const std::string& planner) {
  problem.erase("expected");
  problem.erase("baselines");
  const auto chosen = planner::parse_planner(planner);
  const auto parsed = planner::parse_case(problem.dump());
  INFO((chosen ? "" : chosen.error()) << (parsed ? "" : parsed.error()));
  REQUIRE(chosen);
  REQUIRE(parsed);
  CHECK(parsed->unknown.empty());
  const auto found = planner::search(*chosen, parsed->content);
  INFO((found ? "" : found.error()));
  REQUIRE(found);
  return planner::to_json(*found);
}

/// The sentence about a broken case.
inline std::string mistake_of(const json& problem) {
  const auto parsed = planner::parse_case(problem.dump());
  return parsed ? "" : parsed.error();
}

inline bool is_near(double a, double b, double part = 1e-9) {
  return std::abs(a - b) <= part * std::max({std::abs(a), std::abs(b), 1e-12});
}

/// The end of the last operator of a placement; unreachable without memory for it.
inline double placement_cost(const json& problem, const choices& devices) {
  const auto& operators = problem.at("operators");
  const std::size_t count = problem.at("memory").size();
  REQUIRE(devices.size() == operators.size());
  std::vector<double> memory(count), is_free(count), arrival(devices.size());
  std::map<std::pair<int, int>, double> wire;
  double end = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto device = static_cast<std::size_t>(devices[i]);
    REQUIRE(device < count);
    memory[device] += operators[i].at("memory").get<double>();
    if (memory[device] > problem.at("memory")[device].get<double>())
      return unreachable;
    const double finish = std::max(is_free[device], arrival[i])
                          + operators[i].at("seconds")[device].get<double>();
    is_free[device] = finish;
    end = std::max(end, finish);
    std::map<int, std::vector<std::size_t>> readers; // by device
    for (const auto& e : problem.at("edges"))
      if (e[0].get<std::size_t>() == i)
        readers[devices[e[1].get<std::size_t>()]].push_back(e[1].get<std::size_t>());
    for (const auto& [other, numbers] : readers) {
      double there = finish;
      if (other != devices[i]) {
        auto& busy = wire[{devices[i], other}];
        const auto to = static_cast<std::size_t>(other);
        busy = std::max(finish, busy)
               + operators[i].at("bytes").get<double>()
                   / problem.at("bandwidth")[device][to].get<double>();
        there = busy + problem.at("latency")[device][to].get<double>();
      }
      for (const auto reader : numbers)
        arrival[reader] = std::max(arrival[reader], there);
    }
  }
  return end;
}

/// The sum over nodes and edges; unreachable if the memory does not suffice.
inline double strategies_cost(const json& problem, const choices& strategies) {
  REQUIRE(strategies.size() == problem.at("nodes").size());
  double cost = 0, memory = 0;
  std::size_t node = 0;
  for (const int strategy : strategies) {
    const auto& content = problem.at("nodes")[node++];
    cost += content.at("cost").at(static_cast<std::size_t>(strategy)).get<double>();
    memory += content.at("memory").at(static_cast<std::size_t>(strategy)).get<double>();
  }
  for (const auto& e : problem.at("edges")) {
    const auto end = [&](const char* name) {
      return static_cast<std::size_t>(strategies[e.at(name).get<std::size_t>()]);
    };
    cost += e.at("cost").at(end("from")).at(end("to")).get<double>();
  }
  const bool is_limited = problem.contains("memory") && !problem.at("memory").is_null();
  return is_limited && memory > problem.at("memory").get<double>() ? unreachable : cost;
}

inline double cost_of(const json& problem, const choices& plan) {
  return problem.at("kind") == "placement" ? placement_cost(problem, plan)
                                           : strategies_cost(problem, plan);
}

/// Calls a function for every plan of a small problem, in lexicographic order.
inline void for_each_plan(const json& problem,
                          const std::function<void(const choices&)>& visit) {
  choices counts;
  if (problem.at("kind") == "placement")
    counts.assign(problem.at("operators").size(),
                  static_cast<int>(problem.at("memory").size()));
  else
    for (const auto& node : problem.at("nodes"))
      counts.push_back(static_cast<int>(node.at("cost").size()));
  choices plan(counts.size());
  for (;;) {
    visit(plan);
    std::size_t place = plan.size();
    while (place > 0 && ++plan[place - 1] == counts[place - 1])
      plan[--place] = 0;
    if (place == 0)
      return;
  }
}

/// The least cost of all plans; unreachable if nothing fits.
inline double least_cost(const json& problem) {
  double least = unreachable;
  for_each_plan(problem, [&](const choices& plan) {
    least = std::min(least, cost_of(problem, plan));
  });
  return least;
}

/// Whether an answer keeps the rules, costs as much as it says, and at most `within`
/// times the optimum; an optimum of `unreachable` has no plan.
inline bool is_good(const json& problem, const json& answer, double optimum,
                    double within) {
  if (answer.at("cost").is_null())
    return optimum == unreachable;
  const double said = answer.at("cost").get<double>();
  const double paid = cost_of(problem, answer.at("plan").get<choices>());
  CHECK(paid < unreachable); // no planner answers a plan that breaks a rule
  CHECK(is_near(paid, said));
  CHECK(paid >= optimum * (1 - 1e-9));
  return paid <= optimum * within * (1 + 1e-9);
}

inline double optimum_of(const json& problem) {
  const auto& cost = problem.at("expected").at("cost");
  return cost.is_null() ? unreachable : cost.get<double>();
}

} // namespace troupe::judged_cases
