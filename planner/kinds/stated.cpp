// SPDX-License-Identifier: BSD-3-Clause
#include "planner/kinds/stated.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

namespace troupe::planner {

namespace {

constexpr double operations_a_product = 6; // 2 forward, 4 backward

class builder {
public:
  explicit builder(const stated_problem& problem) : problem_(problem) {}

  intra_problem build() {
    result_.memory = problem_.memory;
    result_.mesh_axes = static_cast<int>(problem_.mesh.size());
    for (const auto& op : problem_.operators)
      add_node(op);
    for (const auto& edge : problem_.edges)
      add_edge(edge);
    return std::move(result_);
  }

private:
  // A strategy: the index that each axis splits.
  using split = std::string;

  double size_of(const std::string& indices) const {
    double size = 1;
    for (const char index : indices)
      size *= problem_.sizes.at(index);
    return size;
  }

  bool divides(const split& s) const {
    std::map<char, double> parts;
    for (std::size_t axis = 0; axis < s.size(); ++axis)
      if (s[axis] != unsplit)
        parts.try_emplace(s[axis], 1.).first->second *= problem_.mesh[axis].devices;
    return std::ranges::all_of(parts, [&](const auto& part) {
      return std::fmod(problem_.sizes.at(part.first), part.second) == 0;
    });
  }

  // The last axis changes fastest, and `unsplit` is the last choice.
  std::vector<split> splits(const std::string& allowed) const {
    std::vector<split> found{{}};
    for (std::size_t axis = 0; axis < problem_.mesh.size(); ++axis) {
      std::vector<split> longer;
      for (const auto& s : found)
        for (const char index : allowed + unsplit)
          longer.push_back(s + index);
      found = std::move(longer);
    }
    std::erase_if(found, [&](const split& s) { return !divides(s); });
    return found;
  }

  double all_reduce_seconds(double values, const std::string& indices, const split& s,
                            std::size_t axis) const {
    const double bytes =
      problem_.bytes_an_element
      * shard_bytes(values, indices, s, problem_.mesh, static_cast<int>(axis));
    const auto& along = problem_.mesh[axis];
    return bytes_sent(collective_operation::all_reduce, bytes, along.devices)
           / along.bytes_per_second;
  }

  double work_seconds(const stated_operator& op, const split& s) const {
    double devices = 1;
    for (std::size_t axis = 0; axis < s.size(); ++axis)
      if (s[axis] != unsplit)
        devices *= problem_.mesh[axis].devices;
    double operations = op.operations;
    if (!op.is_elementwise) {
      std::set<char> indices;
      for (const auto& operand : op.operands)
        indices.insert(operand.begin(), operand.end());
      operations = operations_a_product * op.repeats
                   * size_of(std::string(indices.begin(), indices.end()));
    }
    return operations / devices / problem_.operations_per_second;
  }

  // Sums of partial results: of the output forward, of operands' gradients backward.
  double reduction_seconds(const stated_operator& op, const split& s) const {
    double seconds = 0;
    for (std::size_t axis = 0; axis < s.size(); ++axis) {
      const auto lacks = [&](const std::string& indices) {
        return s[axis] != unsplit && indices.find(s[axis]) == std::string::npos;
      };
      if (lacks(op.output))
        seconds +=
          all_reduce_seconds(op.repeats * size_of(op.output), op.output, s, axis);
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        if (const auto& operand = op.operands[i]; lacks(operand)) {
          const double times = op.weight == static_cast<int>(i) ? op.repeats : 1;
          seconds += all_reduce_seconds(times * size_of(operand), operand, s, axis);
        }
    }
    return seconds;
  }

  double memory_of(const stated_operator& op, const split& s) const {
    double bytes = op.repeats * problem_.bytes_an_element
                   * shard_bytes(size_of(op.output), op.output, s, problem_.mesh);
    if (op.weight) {
      const auto& weight = op.operands[static_cast<std::size_t>(*op.weight)];
      bytes += op.repeats * problem_.bytes_a_parameter
               * shard_bytes(size_of(weight), weight, s, problem_.mesh);
    }
    return bytes;
  }

  static std::string name_of(const split& s) {
    std::string name;
    for (const char index : s)
      name += (name.empty() ? "" : "|") + std::string(1, index);
    return name;
  }

  void add_node(const stated_operator& op) {
    auto& node = result_.nodes.emplace_back();
    node.name = op.name;
    splits_.push_back(splits(op.allowed));
    for (const auto& s : splits_.back()) {
      node.strategies.push_back(name_of(s));
      node.cost.push_back(work_seconds(op, s)
                          + (op.is_elementwise ? 0 : reduction_seconds(op, s)));
      node.memory.push_back(memory_of(op, s));
    }
  }

  void add_edge(const stated_edge& edge) {
    const auto& output = problem_.operators[static_cast<std::size_t>(edge.from)].output;
    const auto renamed = [&](char index) {
      const auto found = edge.renamed.find(index);
      return found == edge.renamed.end() ? index : found->second;
    };
    std::string moved; // the output's indices by the reader's names
    for (const char index : output)
      moved += renamed(index);
    const double bytes = size_of(output) * problem_.bytes_an_element;
    auto& added = result_.edges.emplace_back();
    added.from = edge.from;
    added.to = edge.to;
    for (auto held : splits_[static_cast<std::size_t>(edge.from)]) {
      for (char& index : held)
        index = output.find(index) == std::string::npos ? unsplit : renamed(index);
      auto& row = added.cost.emplace_back();
      for (auto wanted : splits_[static_cast<std::size_t>(edge.to)]) {
        for (char& index : wanted)
          if (moved.find(index) == std::string::npos)
            index = unsplit;
        row.push_back(repartition_seconds(bytes, held, wanted, problem_.mesh)
                      + repartition_seconds(bytes, wanted, held, problem_.mesh));
      }
    }
  }

  const stated_problem& problem_;
  std::vector<std::vector<split>> splits_; // by operator
  intra_problem result_;
};

} // namespace

intra_problem strategies_of(const stated_problem& problem) {
  return builder{problem}.build();
}

} // namespace troupe::planner
