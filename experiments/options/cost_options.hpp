#pragma once

#include "actors/plan/costs.hpp"
#include "actors/plan/run_plan.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

/// A table of costs from "F=1,B=2/2/3/3,latency=0.5", in milliseconds; bandwidth in
/// bytes a second, bytes a message. B is 2F unless given (I + W if those are), I and W
/// are B/2. Data replicas take so many times as long: "replica=1/1/2.5".
struct costs {
  cost_table actions;
  link_cost link; ///< Between ranks.
  simulated_sizes sizes;
  std::vector<double> slowdowns;
};
tl::expected<costs, std::string> parse_costs(const std::string& text, int stages);

/// What is wrong with the slowdowns of data replicas, if anything.
std::string wrong_slowdowns(const costs& given, const run_plan& plan);

/// Why a run could outlast the virtual clock, which counts nanoseconds in 63 bits;
/// empty if it cannot.
std::string outlasts_clock(const costs& given, const run_plan& plan);

} // namespace troupe
