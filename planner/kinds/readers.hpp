// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Readers of cases and writers of plans, one pair for each kind, each in the kind's
// file NAME_case.cpp. Readers throw case_error.

#include "planner/case_value.hpp"
#include "planner/problem.hpp"

namespace troupe::planner {

/// Edges [from, to] of operators that are numbered in a topological order.
std::vector<edge> read_edges(const case_value& edges, int operators);

/// Most operators of a case.
inline constexpr int most_operators = 100'000;

pipedream_problem read_pipedream(const case_value& from);
tarnawski_problem read_tarnawski(const case_value& from);
piper_problem read_piper(const case_value& from);
alpa_problem read_alpa(const case_value& from);
dapple_problem read_dapple(const case_value& from);
dapple_latency_problem read_dapple_latency(const case_value& from);
placement_problem read_placement(const case_value& from);
intra_problem read_intra(const case_value& from);
propagation_problem read_propagation(const case_value& from);
options_problem read_options(const case_value& from);

/// Adds the plan to an answer's members: "plan", and those that the kind has besides.
void write(nlohmann::ordered_json& to, const pipedream_plan& plan);
void write(nlohmann::ordered_json& to, const tarnawski_plan& plan);
void write(nlohmann::ordered_json& to, const piper_plan& plan);
void write(nlohmann::ordered_json& to, const alpa_plan& plan);
void write(nlohmann::ordered_json& to, const dapple_plan& plan);
void write(nlohmann::ordered_json& to, const dapple_latency& plan);
void write(nlohmann::ordered_json& to, const placement_plan& plan);
void write(nlohmann::ordered_json& to, const intra_plan& plan);
void write(nlohmann::ordered_json& to, const propagation_plan& plan);
void write(nlohmann::ordered_json& to, const options_plan& plan);

} // namespace troupe::planner
