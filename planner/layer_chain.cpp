// SPDX-License-Identifier: BSD-3-Clause
#include "planner/layer_chain.hpp"

#include "planner/searches/tarnawski_units.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::planner {

namespace {

/// Bytes over the cut behind each layer: each output once, however many layers read it.
/// \param layer_of the layer of each operator
template <class Bytes>
std::vector<double> bytes_over_cuts(std::size_t layers, const std::vector<edge>& edges,
                                    const std::vector<int>& layer_of,
                                    const Bytes& bytes_of) {
  std::vector<int> last_reader(layer_of.size(), -1);
  for (const auto& [from, to] : edges)
    last_reader[static_cast<std::size_t>(from)] =
      std::max(last_reader[static_cast<std::size_t>(from)],
               layer_of[static_cast<std::size_t>(to)]);
  std::vector<double> result(layers);
  for (std::size_t o = 0; o < layer_of.size(); ++o)
    for (int cut = layer_of[o]; cut < last_reader[o]; ++cut)
      result[static_cast<std::size_t>(cut)] += bytes_of(o);
  return result;
}

std::vector<int> each_alone(std::size_t count) {
  std::vector<int> result(count);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

/// Shares `total` out to `parts`, the first ones get one more.
int share(int total, int parts, int part) {
  return total / parts + (part < total % parts ? 1 : 0);
}

/// A plan that breaks a rule is no answer: a baseline has no other.
template <class Problem, class Plan>
outcome answer_if_allowed(const Problem& problem, Plan plan) {
  const auto seconds = cost(problem, plan);
  return seconds ? answer{*seconds, any_plan{std::move(plan)}} : answer{};
}

/// Calls `visit` with the number of each part, and its first and last layer.
template <class Visit>
void for_each_part(const std::vector<int>& sizes, const Visit& visit) {
  int first = 0;
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    visit(static_cast<int>(p), first, first + sizes[p] - 1);
    first += sizes[p];
  }
}

std::vector<int> numbers(int first, int last) {
  std::vector<int> result(static_cast<std::size_t>(last - first + 1));
  std::iota(result.begin(), result.end(), first);
  return result;
}

/// All members of the levels up to `level` as replicas of one stage.
std::vector<pipedream_stage> replicated(const pipedream_problem& problem,
                                        std::size_t level,
                                        const std::vector<int>& operators) {
  pipedream_stage stage{operators, problem.levels[level].workers, {}};
  if (level > 0)
    stage.inner = replicated(problem, level - 1, operators);
  return {stage};
}

/// The submesh with the fewest devices that fills the mesh alone; -1 if there is none.
int smallest_submesh(const alpa_problem& problem) {
  int result = -1;
  for (std::size_t m = 0; m < problem.submeshes.size(); ++m) {
    const int size = problem.submeshes[m].devices();
    if (problem.mesh.devices() % size == 0
        && problem.mesh.devices() / size <= problem.layers
        && (result < 0
            || size < problem.submeshes[static_cast<std::size_t>(result)].devices()))
      result = static_cast<int>(m);
  }
  return result;
}

/// The fastest config of layers on a submesh; null if there is none.
const alpa_cost* fastest(const alpa_problem& problem, int first, int last,
                         int submesh) {
  const alpa_cost* result = nullptr;
  for (const auto& c : problem.costs)
    if (c.first == first && c.last == last && c.submesh == submesh
        && (!result || c.seconds < result->seconds))
      result = &c;
  return result;
}

} // namespace

layer_chain chain_of(const pipedream_problem& problem) {
  layer_chain result{.parts = problem.levels.back().workers};
  for (const auto& o : problem.operators) {
    result.seconds.push_back(o.forward + o.backward);
    result.parameters.push_back(o.parameter_bytes);
  }
  const auto count = problem.operators.size();
  result.cut_bytes =
    bytes_over_cuts(count, problem.edges, each_alone(count),
                    [&](std::size_t o) { return problem.operators[o].output_bytes; });
  return result;
}

outcome answer_of(const pipedream_problem& problem, const std::vector<int>& sizes) {
  pipedream_plan result;
  const auto level = problem.levels.size() - 1;
  for_each_part(sizes, [&](int part, int first, int last) {
    auto& stage = result.stages.emplace_back();
    stage.operators = numbers(first, last);
    stage.replicas =
      share(problem.levels[level].workers, static_cast<int>(sizes.size()), part);
    if (level > 0)
      stage.inner = replicated(problem, level - 1, stage.operators);
  });
  return answer_if_allowed(problem, result);
}

layer_chain chain_of(const tarnawski_problem& problem) {
  const auto units = units_of(problem);
  layer_chain result{.parts =
                       problem.accelerators > 0 ? problem.accelerators : problem.cpus};
  std::vector<int> layer_of(problem.operators.size());
  for (std::size_t u = 0; u < units.operators.size(); ++u) {
    double seconds = 0, size = 0;
    for (const int o : units.operators[u]) {
      const auto& chosen = problem.operators[static_cast<std::size_t>(o)];
      seconds += problem.accelerators > 0 ? chosen.accelerator : chosen.cpu;
      size += chosen.size;
      layer_of[static_cast<std::size_t>(o)] = static_cast<int>(u);
    }
    result.seconds.push_back(seconds);
    result.parameters.push_back(size);
  }
  result.cut_bytes =
    bytes_over_cuts(units.operators.size(), problem.edges, layer_of,
                    [&](std::size_t o) { return problem.operators[o].transfer; });
  return result;
}

outcome answer_of(const tarnawski_problem& problem, const std::vector<int>& sizes) {
  const auto units = units_of(problem);
  tarnawski_plan result;
  for_each_part(sizes, [&](int, int first, int last) {
    auto& part = result.parts.emplace_back();
    part.on_cpu = problem.accelerators == 0;
    for (int u = first; u <= last; ++u) {
      const auto& more = units.operators[static_cast<std::size_t>(u)];
      part.operators.insert(part.operators.end(), more.begin(), more.end());
    }
    std::ranges::sort(part.operators);
  });
  return answer_if_allowed(problem, result);
}

layer_chain chain_of(const piper_problem& problem) {
  layer_chain result{.parts = problem.devices};
  for (const auto& o : problem.operators) {
    const bool is_known = !o.options.empty();
    result.seconds.push_back(is_known ? o.options.front().seconds : 0);
    result.parameters.push_back(is_known ? o.options.front().weights : 0);
  }
  result.cut_bytes.assign(problem.operators.size(), 0);
  for (const auto& [ends, bytes] : problem.edges)
    for (int cut = ends.from; cut < ends.to; ++cut)
      result.cut_bytes[static_cast<std::size_t>(cut)] += bytes;
  return result;
}

outcome answer_of(const piper_problem& problem, const std::vector<int>& sizes) {
  piper_plan result;
  bool is_possible = true;
  for_each_part(sizes, [&](int, int first, int last) {
    auto& stage = result.stages.emplace_back();
    stage.operators = numbers(first, last);
    for (const int o : stage.operators) {
      const auto& options = problem.operators[static_cast<std::size_t>(o)].options;
      const auto whole = std::ranges::find(options, 1, &piper_option::tensor);
      is_possible = is_possible && whole != options.end();
      stage.options.push_back(is_possible ? whole->name : "");
    }
  });
  return is_possible ? answer_if_allowed(problem, result) : answer{};
}

layer_chain chain_of(const alpa_problem& problem) {
  const int submesh = smallest_submesh(problem);
  layer_chain result{.parts = 1};
  if (submesh >= 0)
    result.parts = problem.mesh.devices()
                   / problem.submeshes[static_cast<std::size_t>(submesh)].devices();
  for (int layer = 0; layer < problem.layers; ++layer) {
    const auto* const c = fastest(problem, layer, layer, submesh);
    result.seconds.push_back(c ? c->seconds : 0);
  }
  result.parameters.assign(result.seconds.size(), 0);
  result.cut_bytes.assign(result.seconds.size(), 0);
  return result;
}

outcome answer_of(const alpa_problem& problem, const std::vector<int>& sizes) {
  const int submesh = smallest_submesh(problem);
  alpa_plan result;
  bool is_possible = true;
  for_each_part(sizes, [&](int, int first, int last) {
    const auto* const c = fastest(problem, first, last, submesh);
    is_possible = is_possible && c;
    if (is_possible)
      result.stages.push_back({first, last, submesh, c->config});
  });
  return is_possible ? answer_if_allowed(problem, result) : answer{};
}

layer_chain chain_of(const dapple_problem& problem) {
  layer_chain result{.parts = problem.devices()};
  for (const auto& layer : problem.layers) {
    result.seconds.push_back(layer.forward + layer.backward);
    result.parameters.push_back(layer.parameter_bytes);
    result.cut_bytes.push_back(layer.output_bytes);
  }
  result.cut_bytes.back() = 0;
  return result;
}

outcome answer_of(const dapple_problem& problem, const std::vector<int>& sizes) {
  dapple_plan result;
  int next = 0;
  for_each_part(sizes, [&](int part, int first, int last) {
    const int devices = share(problem.devices(), static_cast<int>(sizes.size()), part);
    result.stages.push_back({first, last, numbers(next, next + devices - 1)});
    next += devices;
  });
  return answer_if_allowed(problem, result);
}

layer_chain chain_of(const placement_problem& problem) {
  layer_chain result{.parts = problem.devices()};
  for (const auto& o : problem.operators) {
    result.seconds.push_back(std::ranges::min(o.seconds));
    result.parameters.push_back(o.memory);
  }
  const auto count = problem.operators.size();
  result.cut_bytes =
    bytes_over_cuts(count, problem.edges, each_alone(count),
                    [&](std::size_t o) { return problem.operators[o].bytes; });
  return result;
}

outcome answer_of(const placement_problem& problem, const std::vector<int>& sizes) {
  placement_plan result;
  for_each_part(sizes, [&](int part, int first, int last) {
    result.devices.insert(result.devices.end(),
                          static_cast<std::size_t>(last - first + 1), part);
  });
  return answer_if_allowed(problem, result);
}

} // namespace troupe::planner
