// SPDX-License-Identifier: BSD-3-Clause
// Metropolis: Markov chains over assignments. Jia, Zaharia, Aiken, "Beyond Data and
// Model Parallelism for Deep Neural Networks" (FlexFlow), MLSys 2019, section 6.
//
//   propose: one operator, drawn at random, gets another random choice
//   accept with probability min(1, exp(beta (cost - proposed cost)))        equation 2
//
// Chains have different betas: low ones cross high costs of small problems, high ones
// descend in large problems. The last quarter of a chain returns to the lowest cost so
// far, and has a higher beta.
//
// Two additions help where memory is scarce. One proposal in three changes two
// operators, so that operators can change places. Excess memory costs time, so that a
// chain can cross assignments that do not fit; only those that fit are answers.

#include "planner/assignment.hpp"
#include "planner/random_draws.hpp"
#include "planner/searches/searches.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace troupe::planner {

namespace {

// In units of the chain's lowest cost; chains take them in turn.
constexpr std::array betas{10., 10., 20., 40.};
constexpr double last_part = 0.25;    // of a chain's proposals, from its lowest cost on
constexpr double last_factor = 3;     // of beta in the last part
constexpr int proposals_per_pair = 3; // one of them changes two operators
// Of memory, in units of the chain's first cost: for each limit, and for any excess.
constexpr double excess_penalty = 5;
constexpr double refusal_penalty = 0.05;

struct found_assignment {
  double cost = std::numeric_limits<double>::infinity();
  assignment choices; // empty: nothing fits
};

class chain {
public:
  chain(const assignment_space& space, random_draws& draws, double beta)
    : space_(space), draws_(draws), beta_(beta), current_(space.choices.size()) {
    for (std::size_t i = 0; i < current_.size(); ++i)
      current_[i] = draws.below(space.choices[i]);
    unit_ = space.cost(current_);
    energy_ = lowest_ = energy_of(current_);
    lowest_choices_ = current_;
  }

  void step() {
    auto proposed = current_;
    change_operator(proposed);
    if (draws_.below(proposals_per_pair) == 0)
      change_operator(proposed);
    const double energy = energy_of(proposed);
    if (energy > energy_
        && draws_.unit() >= std::exp(beta_ * (energy_ - energy) / lowest_))
      return;
    current_ = std::move(proposed);
    energy_ = energy;
    if (energy < lowest_) {
      lowest_ = energy;
      lowest_choices_ = current_;
    }
  }

  /// Continues from the lowest cost so far, with a higher beta.
  void descend() {
    current_ = lowest_choices_;
    energy_ = lowest_;
    beta_ *= last_factor;
  }

  const found_assignment& best() const { return best_; }

private:
  void change_operator(assignment& choices) {
    const auto index =
      static_cast<std::size_t>(draws_.below(static_cast<int>(choices.size())));
    const int count = space_.choices[index];
    if (count > 1)
      choices[index] = (choices[index] + 1 + draws_.below(count - 1)) % count;
  }

  // The cost, and a penalty for excess memory. Keeps the best assignment that fits.
  double energy_of(const assignment& choices) {
    const double cost = space_.cost(choices);
    const double excess = space_.excess(choices);
    if (excess > 0)
      return cost + unit_ * (refusal_penalty + excess_penalty * excess);
    if (cost < best_.cost)
      best_ = {cost, choices};
    return cost;
  }

  const assignment_space& space_;
  random_draws& draws_;
  double beta_;
  assignment current_, lowest_choices_;
  double unit_ = 0, energy_ = 0, lowest_ = 0;
  found_assignment best_;
};

assignment best_assignment(const assignment_space& space,
                           const search_options& options) {
  random_draws draws{options.seed};
  found_assignment best;
  if (space.choices.empty())
    return {};
  for (int index = 0; index < options.chains; ++index) {
    chain states{space, draws, betas[static_cast<std::size_t>(index) % betas.size()]};
    const int descent = static_cast<int>(options.proposals * (1 - last_part));
    for (int proposal = 0; proposal < options.proposals; ++proposal) {
      if (proposal == descent)
        states.descend();
      states.step();
    }
    if (states.best().cost < best.cost)
      best = states.best();
  }
  return best.choices;
}

} // namespace

outcome mcmc_of_placement(const placement_problem& problem,
                          const search_options& options) {
  auto devices = best_assignment(space_of(problem), options);
  if (devices.empty() && !problem.operators.empty())
    return answer{};
  return judged(problem, placement_plan{std::move(devices)});
}

outcome mcmc_of_strategies(const intra_problem& problem,
                           const search_options& options) {
  auto strategies = best_assignment(space_of(problem), options);
  if (strategies.empty() && !problem.nodes.empty())
    return answer{};
  return judged(problem, intra_plan{std::move(strategies)});
}

} // namespace troupe::planner
