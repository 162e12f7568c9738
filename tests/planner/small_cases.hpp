// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Random cases that are small enough to try every plan.

#include "tests/dice.hpp"
#include "tests/planner/judged_cases.hpp"

#include <string>

namespace troupe::judged_cases {

/// Edges from each operator but the first to one or two earlier ones.
inline std::vector<std::pair<int, int>> random_edges(dice& random, int operators) {
  std::vector<std::pair<int, int>> edges;
  for (int to = 1; to < operators; ++to)
    for (int more = random.number(1, 2); more > 0; --more) {
      const std::pair edge{random.number(std::max(0, to - 3), to - 1), to};
      if (std::ranges::find(edges, edge) == edges.end())
        edges.push_back(edge);
    }
  return edges;
}

inline json random_placement(dice& random) {
  const int devices = random.number(2, 3), operators = random.number(4, 6);
  json problem{{"name", "small"}, {"kind", "placement"}};
  int whole = 0;
  for (int i = 0; i < operators; ++i) {
    json seconds;
    for (int device = 0; device < devices; ++device)
      seconds.push_back(random.number(10, 60));
    const int memory = random.number(1, 9);
    whole += memory;
    problem["operators"].push_back(
      {{"seconds", seconds}, {"bytes", random.number(10, 400)}, {"memory", memory}});
  }
  problem["edges"] = random_edges(random, operators);
  for (int from = 0; from < devices; ++from) {
    json bandwidth, latency;
    for (int to = 0; to < devices; ++to) {
      bandwidth.push_back(random.number(4, 32));
      latency.push_back(from == to ? 0 : random.number(0, 5));
    }
    problem["bandwidth"].push_back(bandwidth);
    problem["latency"].push_back(latency);
    problem["memory"].push_back(random.number(whole / 3, whole));
  }
  return problem;
}

inline json random_strategies(dice& random) {
  json problem{{"name", "small"}, {"kind", "intra"}};
  const int operators = random.number(3, 6);
  int least = 0, most = 0;
  for (int i = 0; i < operators; ++i) {
    json names, costs, memory;
    std::vector<int> needs;
    for (int strategy = random.number(1, 4); strategy > 0; --strategy) {
      names.push_back("s" + std::to_string(strategy));
      costs.push_back(random.number(0, 40));
      needs.push_back(random.number(1, 20));
    }
    least += *std::ranges::min_element(needs);
    most += *std::ranges::max_element(needs);
    problem["nodes"].push_back({{"name", "operator" + std::to_string(i)},
                                {"strategies", names},
                                {"cost", costs},
                                {"memory", needs}});
  }
  problem["edges"] = json::array();
  for (const auto& [from, to] : random_edges(random, operators)) {
    json matrix;
    for (std::size_t i = 0; i < problem["nodes"][from]["cost"].size(); ++i) {
      json row;
      for (std::size_t j = 0; j < problem["nodes"][to]["cost"].size(); ++j)
        row.push_back(random.number(0, 3) == 0 ? 0 : random.number(1, 60));
      matrix.push_back(row);
    }
    problem["edges"].push_back({{"from", from}, {"to", to}, {"cost", matrix}});
  }
  if (random.coin())
    problem["memory"] = random.number(least - 1, most);
  return problem;
}

} // namespace troupe::judged_cases
