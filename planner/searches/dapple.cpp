// SPDX-License-Identifier: BSD-3-Clause
// DAPPLE's planner: stages from the first to the last, each on devices that one of
// three rules places, by the estimated latency of the whole batch. Fan et al., "DAPPLE:
// A Pipelined Data Parallel Approach for Training Large Models", PPoPP 2021, section 4.
//
//   fresh   machines without a stage yet, then others     machine 0  0 0 . .
//   append  machines with a stage already, then others    machine 1  1 1 1 .
//   spread  one device of each machine in turn            machine 2  . . . .
//
// The paper keeps one plan for each state (layers placed, devices used). Plans of one
// state differ in bottleneck and pivot, so several are kept here.

#include "planner/searches/searches.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace troupe::planner {

namespace {

std::size_t size_of(const dapple_problem& problem) {
  return problem.layers.size() * static_cast<std::size_t>(problem.devices());
}

/// Plans kept for each state. Small cases have fewer plans; large ones keep fewer, as
/// each plan is tried with each next stage.
std::size_t plans_a_state(const dapple_problem& problem) {
  const auto size = size_of(problem);
  return std::clamp<std::size_t>(400'000 / (size * size), 1, 400);
}

/// All numbers of devices of each machine are tried if there are at most so many, and
/// layers times devices are few. The three rules miss the best plan by up to 8% on
/// machines of unequal sizes.
constexpr double most_choices = 100;
constexpr std::size_t most_layers_times_devices = 100;

enum class placement_rule { fresh, append, spread };

constexpr placement_rule placement_rules[] = {
  placement_rule::fresh, placement_rule::append, placement_rule::spread};

/// A number of devices of each machine.
using device_counts = std::vector<int>;

/// Layers up to `last` on devices of each machine.
struct placed_stage {
  int last = 0;
  device_counts devices;
};

/// The first stages of a plan, with their times and those of communication between.
struct partial_plan {
  std::vector<placed_stage> stages;
  dapple_latency_problem times;
  double estimate = 0; ///< Seconds of a batch if all other devices have one more stage.
};

class dapple_search {
public:
  explicit dapple_search(const dapple_problem& problem)
    : problem_(problem), plans_a_state_(plans_a_state(problem)) {
    sums_.emplace_back();
    for (const auto& layer : problem.layers)
      sums_.push_back({sums_.back().forward + layer.forward,
                       sums_.back().backward + layer.backward, 0,
                       sums_.back().parameter_bytes + layer.parameter_bytes});
  }

  dapple_plan best() {
    open_[{0, problem_.machines}].push_back(
      {.times = {.microbatches = problem_.microbatches}});
    // States are in order of layers, and each stage has a layer or more.
    while (!open_.empty()) {
      auto state = open_.extract(open_.begin());
      keep_best(state.mapped());
      for (const auto& plan : state.mapped())
        extend(plan, state.key().first, state.key().second);
    }
    return with_devices(best_.stages);
  }

private:
  void keep_best(std::vector<partial_plan>& plans) const {
    if (plans.size() <= plans_a_state_)
      return;
    std::ranges::stable_sort(plans, {}, &partial_plan::estimate);
    plans.resize(plans_a_state_);
  }

  /// Devices of each machine by a rule.
  /// \pre `unused` has as many
  device_counts taken(const device_counts& unused, int count,
                      placement_rule rule) const {
    device_counts result(unused.size());
    if (rule == placement_rule::spread) {
      while (count > 0)
        for (std::size_t m = 0; m < unused.size() && count > 0; ++m)
          if (result[m] < unused[m]) {
            ++result[m];
            --count;
          }
      return result;
    }
    std::vector<std::size_t> order(unused.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::size_t m) {
      const bool is_fresh = unused[m] == problem_.machines[m];
      return is_fresh == (rule == placement_rule::fresh) ? 0 : 1;
    });
    for (const auto m : order) {
      result[m] = std::min(count, unused[m]);
      count -= result[m];
    }
    return result;
  }

  /// Devices that a next stage may have. At least a device is left for a stage behind.
  std::set<device_counts> choices(const device_counts& unused) const {
    const int count = std::accumulate(unused.begin(), unused.end(), 0);
    std::set<device_counts> result;
    for (int devices = 1; devices < count; ++devices)
      for (const auto rule : placement_rules)
        result.insert(taken(unused, devices, rule));
    double all = 1;
    for (const int size : unused)
      all *= size + 1;
    if (all <= most_choices && size_of(problem_) <= most_layers_times_devices)
      add_all(unused, count, result);
    return result;
  }

  /// Adds all numbers of devices of each machine, in the manner of an odometer.
  static void add_all(const device_counts& unused, int count,
                      std::set<device_counts>& result) {
    device_counts chosen(unused.size());
    for (std::size_t m = 0; m < chosen.size();) {
      if (chosen[m] == unused[m]) {
        chosen[m++] = 0;
        continue;
      }
      ++chosen[m];
      m = 0;
      if (std::accumulate(chosen.begin(), chosen.end(), 0) < count)
        result.insert(chosen);
    }
  }

  /// Bytes a second between devices of one or two stages.
  double bandwidth(const device_counts& some, const device_counts& more) const {
    int machines = 0;
    for (std::size_t m = 0; m < some.size(); ++m)
      machines += some[m] + more[m] > 0 ? 1 : 0;
    return machines == 1 ? problem_.inside : problem_.between;
  }

  /// Adds a stage of layers up to `last`, and communication with the stage before.
  void append(partial_plan& plan, int last, const device_counts& chosen) const {
    auto& [forward, backward, exchange, microbatches] = plan.times;
    int first = 0;
    if (!plan.stages.empty()) {
      const auto& [end, devices] = plan.stages.back();
      first = end + 1;
      const double seconds = problem_.layers[static_cast<std::size_t>(end)].output_bytes
                             / bandwidth(devices, chosen);
      forward.push_back(seconds);
      backward.push_back(seconds);
      exchange.push_back(0);
    }
    const double replicas = std::accumulate(chosen.begin(), chosen.end(), 0);
    const auto& before = sums_[static_cast<std::size_t>(first)];
    const auto& after = sums_[static_cast<std::size_t>(last) + 1];
    forward.push_back((after.forward - before.forward) / replicas);
    backward.push_back((after.backward - before.backward) / replicas);
    exchange.push_back(2 * (replicas - 1) / replicas
                       * (after.parameter_bytes - before.parameter_bytes)
                       / bandwidth(chosen, chosen));
    plan.stages.push_back({last, chosen});
  }

  /// Tries all next stages, each followed by one stage of all other layers and devices.
  void extend(const partial_plan& plan, int first, const device_counts& unused) {
    const auto layers = static_cast<int>(problem_.layers.size());
    if (plan.stages.empty())
      finish(plan, unused);
    for (const auto& chosen : choices(unused)) {
      auto remaining = unused;
      for (std::size_t m = 0; m < remaining.size(); ++m)
        remaining[m] -= chosen[m];
      for (int last = first; last + 1 < layers; ++last) {
        auto longer = plan;
        append(longer, last, chosen);
        longer.estimate = finish(longer, remaining);
        keep(open_[{last + 1, remaining}], std::move(longer));
      }
    }
  }

  void keep(std::vector<partial_plan>& plans, partial_plan added) const {
    plans.push_back(std::move(added));
    if (plans.size() > 4 * plans_a_state_)
      keep_best(plans);
  }

  /// Puts all other layers on all other devices. Returns the seconds of a batch.
  double finish(partial_plan plan, const device_counts& unused) {
    append(plan, static_cast<int>(problem_.layers.size()) - 1, unused);
    const double seconds = latency(plan.times).sum();
    if (best_.stages.empty() || seconds < best_.estimate) {
      best_ = std::move(plan);
      best_.estimate = seconds;
    }
    return seconds;
  }

  /// Numbers the devices of each stage, machine by machine.
  dapple_plan with_devices(const std::vector<placed_stage>& stages) const {
    std::vector<int> next;
    int first_device = 0;
    for (const int size : problem_.machines) {
      next.push_back(first_device);
      first_device += size;
    }
    dapple_plan result;
    int first = 0;
    for (const auto& [last, devices] : stages) {
      auto& stage = result.stages.emplace_back(dapple_stage{first, last, {}});
      first = last + 1;
      for (std::size_t m = 0; m < devices.size(); ++m)
        for (int d = 0; d < devices[m]; ++d)
          stage.devices.push_back(next[m]++);
    }
    return result;
  }

  const dapple_problem& problem_;
  std::size_t plans_a_state_;
  std::vector<dapple_layer> sums_; // of the layers before each layer
  std::map<std::pair<int, device_counts>, std::vector<partial_plan>> open_;
  partial_plan best_; // a whole plan, and its seconds
};

} // namespace

outcome dapple(const dapple_problem& problem, const search_options&) {
  return judged(problem, dapple_search{problem}.best());
}

} // namespace troupe::planner
