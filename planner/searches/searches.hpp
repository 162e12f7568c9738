// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The functions of all planners, each in its own file NAME.cpp with the paper and the
// idea. A function's problem says which kind it answers.

#include "planner/problem.hpp"
#include "planner/search_options.hpp"

namespace troupe::planner {

outcome pipedream(const pipedream_problem&, const search_options&);
outcome tarnawski(const tarnawski_problem&, const search_options&);
outcome tarnawski_ip(const tarnawski_problem&, const search_options&);
outcome piper(const piper_problem&, const search_options&);
outcome alpa(const alpa_problem&, const search_options&);
outcome dapple(const dapple_problem&, const search_options&);
outcome latency_of_dapple(const dapple_latency_problem&, const search_options&);
outcome mcmc_of_placement(const placement_problem&, const search_options&);
outcome mcmc_of_strategies(const intra_problem&, const search_options&);
outcome policy_gradient(const placement_problem&, const search_options&);
outcome alpa_intra(const intra_problem&, const search_options&);
outcome tofu(const intra_problem&, const search_options&);
outcome gspmd(const propagation_problem&, const search_options&);
outcome bayes(const options_problem&, const search_options&);
outcome learned(const pipedream_problem&, const search_options&);

outcome tarnawski_on_pipedream(const pipedream_problem&, const search_options&);
outcome piper_on_pipedream(const pipedream_problem&, const search_options&);
outcome dapple_on_pipedream(const pipedream_problem&, const search_options&);
outcome alpa_on_pipedream(const pipedream_problem&, const search_options&);

outcome exhaustive_pipedream(const pipedream_problem&, const search_options&);
outcome exhaustive_tarnawski(const tarnawski_problem&, const search_options&);
outcome exhaustive_piper(const piper_problem&, const search_options&);
outcome exhaustive_alpa(const alpa_problem&, const search_options&);
outcome exhaustive_dapple(const dapple_problem&, const search_options&);
outcome exhaustive_placement(const placement_problem&, const search_options&);
outcome exhaustive_intra(const intra_problem&, const search_options&);
outcome exhaustive_options(const options_problem&, const search_options&);

} // namespace troupe::planner
