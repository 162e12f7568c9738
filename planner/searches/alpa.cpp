// SPDX-License-Identifier: BSD-3-Clause
// Alpa's programme between operators: for each limit of a stage's time, the least sum
// over (stages, first layer, devices). Zheng et al., "Alpa: Automating Inter- and
// Intra-Operator Parallelism for Distributed Deep Learning", OSDI 2022, section 5.2.
//
//   F(s, i, d) = min over last layer, submesh and config of t + F(s - 1, last + 1, d -
//   n) seconds a batch = min over limits of F(s, 0, all) + (microbatches - 1) * limit

#include "planner/searches/searches.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace troupe::planner {

namespace {

constexpr double unreached = std::numeric_limits<double>::infinity();

/// The least sum of times of the layers from a layer to the last, and its first stage.
struct suffix {
  double total = unreached;
  double slowest = 0;
  int row = -1; // of the problem's costs
};

class alpa_search {
public:
  explicit alpa_search(const alpa_problem& problem)
    : problem_(problem), by_first_(static_cast<std::size_t>(problem.layers)) {
    for (std::size_t row = 0; row < problem.costs.size(); ++row)
      if (devices_of(static_cast<int>(row)) <= problem.mesh.devices())
        by_first_[static_cast<std::size_t>(problem.costs[row].first)].push_back(
          static_cast<int>(row));
    for (auto& rows : by_first_)
      std::ranges::sort(rows, {}, [&](int row) { return cost_of(row).seconds; });
    most_stages_ = std::min(problem.layers, problem.mesh.devices());
  }

  /// The best plan; null if nothing fits.
  const alpa_plan* best() {
    std::vector<double> limits;
    for (const auto& c : problem_.costs)
      limits.push_back(c.seconds);
    std::ranges::sort(limits);
    limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
    const double least = least_total();
    for (const double limit : limits) {
      if (least + (problem_.microbatches - 1) * limit >= best_)
        break; // no plan whose slowest stage takes so long is better
      fill(limit);
      for (int s = 1; s <= most_stages_; ++s) {
        const auto& whole = at(s, 0, problem_.mesh.devices());
        const double seconds =
          whole.total + (problem_.microbatches - 1) * whole.slowest;
        if (seconds < best_) {
          best_ = seconds;
          plan_ = unfold(s);
        }
      }
    }
    return best_ == unreached ? nullptr : &plan_;
  }

private:
  const alpa_cost& cost_of(int row) const {
    return problem_.costs[static_cast<std::size_t>(row)];
  }

  int devices_of(int row) const {
    return problem_.submeshes[static_cast<std::size_t>(cost_of(row).submesh)].devices();
  }

  suffix& at(int stages, int first, int devices) {
    const auto layers = static_cast<std::size_t>(problem_.layers) + 1;
    const auto sizes = static_cast<std::size_t>(problem_.mesh.devices()) + 1;
    return table_[(static_cast<std::size_t>(stages) * layers
                   + static_cast<std::size_t>(first))
                    * sizes
                  + static_cast<std::size_t>(devices)];
  }

  /// The least sum of times of any plan.
  double least_total() {
    fill(unreached);
    double result = unreached;
    for (int s = 1; s <= most_stages_; ++s)
      result = std::min(result, at(s, 0, problem_.mesh.devices()).total);
    return result;
  }

  /// Fills the table with stages that take no longer than a limit.
  void fill(double limit) {
    const int devices = problem_.mesh.devices();
    table_.assign(static_cast<std::size_t>(most_stages_ + 1)
                    * static_cast<std::size_t>(problem_.layers + 1)
                    * static_cast<std::size_t>(devices + 1),
                  {});
    at(0, problem_.layers, 0).total = 0;
    for (int s = 1; s <= most_stages_; ++s)
      for (int i = problem_.layers - 1; i >= 0; --i)
        for (const int row : by_first_[static_cast<std::size_t>(i)]) {
          const auto& c = cost_of(row);
          if (c.seconds > limit)
            break; // rows are sorted by time
          if (s - 1 > c.most_later)
            continue;
          const int size = devices_of(row);
          for (int d = size; d <= devices; ++d) {
            const auto& rest = at(s - 1, c.last + 1, d - size);
            auto& state = at(s, i, d);
            if (rest.total + c.seconds < state.total)
              state = {rest.total + c.seconds, std::max(rest.slowest, c.seconds), row};
          }
        }
  }

  alpa_plan unfold(int stages) {
    alpa_plan result;
    int first = 0, devices = problem_.mesh.devices();
    for (; stages > 0; --stages) {
      const int row = at(stages, first, devices).row;
      const auto& c = cost_of(row);
      result.stages.push_back({c.first, c.last, c.submesh, c.config});
      first = c.last + 1;
      devices -= devices_of(row);
    }
    return result;
  }

  const alpa_problem& problem_;
  std::vector<std::vector<int>> by_first_; // rows by first layer, by time
  int most_stages_ = 0;
  std::vector<suffix> table_;
  double best_ = unreached;
  alpa_plan plan_;
};

} // namespace

outcome alpa(const alpa_problem& problem, const search_options&) {
  alpa_search search{problem};
  const auto* const best = search.best();
  return best ? judged(problem, *best) : answer{};
}

} // namespace troupe::planner
