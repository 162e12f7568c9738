// SPDX-License-Identifier: BSD-3-Clause
// REINFORCE over placements: a policy draws a device for each operator, and learns from
// the step time. Mirhoseini et al., "Device Placement Optimization with Reinforcement
// Learning" (ColocRL), ICML 2017, sections 3.1 and 3.2.
//
//   reward      R(p) = -sqrt(time of placement p)
//   gradient    (R(p) - baseline) d log policy(p), baseline: moving average of rewards
//
// The policy is a softmax for each operator in place of the paper's recurrent network.
// A bonus for the policy's entropy keeps all devices possible for longer.

#include "planner/assignment.hpp"
#include "planner/random_draws.hpp"
#include "planner/searches/searches.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace troupe::planner {

namespace {

constexpr double learning_rate = 0.5;
constexpr double entropy_bonus = 0.05;
constexpr double baseline_decay = 0.9;
constexpr double excess_penalty = 5; // of memory, in units of the step time

// A softmax over devices for one operator.
class operator_policy {
public:
  explicit operator_policy(int devices) : logits_(static_cast<std::size_t>(devices)) {
    update_probabilities();
  }

  int draw(random_draws& draws) const {
    double rest = draws.unit();
    std::size_t device = 0;
    while (device + 1 < probabilities_.size() && rest >= probabilities_[device])
      rest -= probabilities_[device++];
    return static_cast<int>(device);
  }

  /// Climbs the gradient of advantage * log probability(chosen) + bonus * entropy.
  void learn(int chosen, double advantage) {
    double entropy = 0;
    for (const double p : probabilities_)
      entropy -= p * log_of(p);
    for (std::size_t device = 0; device < logits_.size(); ++device) {
      const double p = probabilities_[device];
      const double is_chosen = static_cast<int>(device) == chosen ? 1 : 0;
      logits_[device] +=
        learning_rate
        * (advantage * (is_chosen - p) - entropy_bonus * p * (log_of(p) + entropy));
    }
    update_probabilities();
  }

private:
  static double log_of(double p) {
    return std::log(std::max(p, std::numeric_limits<double>::min()));
  }

  void update_probabilities() {
    const double largest = *std::ranges::max_element(logits_);
    probabilities_.clear();
    double sum = 0;
    for (const double logit : logits_)
      sum += probabilities_.emplace_back(std::exp(logit - largest));
    for (double& p : probabilities_)
      p /= sum;
  }

  std::vector<double> logits_, probabilities_;
};

} // namespace

outcome policy_gradient(const placement_problem& problem,
                        const search_options& options) {
  const auto space = space_of(problem);
  random_draws draws{options.seed};
  std::vector<operator_policy> policies;
  for (const int devices : space.choices)
    policies.emplace_back(devices);
  placement_plan best;
  double best_time = std::numeric_limits<double>::infinity();
  double unit = 0, baseline = 0;
  placement_plan drawn{assignment(policies.size())};
  for (int sample = 0; sample < options.samples; ++sample) {
    for (std::size_t i = 0; i < policies.size(); ++i)
      drawn.devices[i] = policies[i].draw(draws);
    const double time = space.cost(drawn.devices);
    const double excess = space.excess(drawn.devices);
    if (excess == 0 && time < best_time) {
      best_time = time;
      best = drawn;
    }
    if (unit == 0)
      unit = time > 0 ? time : 1;
    const double reward = -std::sqrt(time / unit * (1 + excess_penalty * excess));
    if (sample == 0)
      baseline = reward;
    for (std::size_t i = 0; i < policies.size(); ++i)
      policies[i].learn(drawn.devices[i], reward - baseline);
    baseline = baseline_decay * baseline + (1 - baseline_decay) * reward;
  }
  if (best_time == std::numeric_limits<double>::infinity())
    return answer{};
  return judged(problem, best);
}

} // namespace troupe::planner
