// SPDX-License-Identifier: BSD-3-Clause
#include "planner/catalog.hpp"

#include "planner/searches/baselines.hpp"
#include "planner/searches/searches.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::planner {

namespace {

using mistake = tl::unexpected<std::string>;

template <class Function>
struct problem_type;

template <class Problem>
struct problem_type<outcome (*)(const Problem&, const search_options&)> {
  using type = Problem;
};

/// A method from a function of one kind of problem.
template <auto search_one_kind>
method of_kind() {
  using content = typename problem_type<decltype(search_one_kind)>::type;
  return {content::kind, [](const any_problem& p, const search_options& options) {
            return search_one_kind(std::get<content>(p), options);
          }};
}

/// A baseline for all kinds that can be cut as a row of layers.
template <std::vector<int> (*sizes)(const layer_chain&)>
std::vector<method> cuts_of_layers() {
  std::vector<method> result{of_kind<&baseline<pipedream_problem, sizes>>(),
                             of_kind<&baseline<tarnawski_problem, sizes>>(),
                             of_kind<&baseline<piper_problem, sizes>>(),
                             of_kind<&baseline<dapple_problem, sizes>>(),
                             of_kind<&baseline<placement_problem, sizes>>()};
  if constexpr (sizes == &uniform_sizes) // costs of Alpa's stages have no bytes
    result.push_back(of_kind<&baseline<alpa_problem, sizes>>());
  return result;
}

struct number_option {
  std::string_view name;
  std::int64_t least, most;
  void (*store)(search_options&, std::int64_t);
};

constexpr number_option number_options[] = {
  {"seed", 0, std::int64_t{1} << 53,
   [](search_options& o, std::int64_t value) {
     o.seed = static_cast<std::uint64_t>(value);
   }},
  {"chains", 1, 1000,
   [](search_options& o, std::int64_t value) { o.chains = static_cast<int>(value); }},
  {"proposals", 1, 10'000'000,
   [](search_options& o, std::int64_t value) {
     o.proposals = static_cast<int>(value);
   }},
  {"samples", 1, 10'000'000,
   [](search_options& o, std::int64_t value) { o.samples = static_cast<int>(value); }},
  {"askings", 1, 10'000,
   [](search_options& o, std::int64_t value) { o.askings = static_cast<int>(value); }},
  {"seconds", 1, 86'400,
   [](search_options& o, std::int64_t value) { o.seconds = static_cast<int>(value); }},
};

/// Stores one option, "seed=3". Returns a sentence about a mistake, or an empty text.
std::string store_option(chosen_planner& chosen, std::string_view text) {
  const auto equals = text.find('=');
  const auto name = text.substr(0, equals);
  const auto& read = chosen.row->options;
  if (std::ranges::find(read, name) == read.end()) {
    std::string known;
    for (const auto& option : read)
      known += (known.empty() ? "" : ", ") + std::string{option} + "=";
    return "planner " + std::string{chosen.row->name} + " has no option '"
           + std::string{name}
           + "': " + (known.empty() ? "give its name alone" : "give " + known);
  }
  const auto value = equals == text.npos ? std::string_view{} : text.substr(equals + 1);
  if (name == "costs") {
    if (value.empty())
      return "'" + std::string{text} + "' names no file: give costs=FILE";
    chosen.options.costs = value;
    return {};
  }
  const auto& option = *std::ranges::find(number_options, name, &number_option::name);
  std::int64_t number = 0;
  const auto [end, failed] =
    std::from_chars(value.data(), value.data() + value.size(), number);
  if (failed != std::errc{} || end != value.data() + value.size()
      || number < option.least || number > option.most)
    return "'" + std::string{text} + "' is out of range: " + std::string{name}
           + "= takes a whole number from " + std::to_string(option.least) + " to "
           + std::to_string(option.most);
  option.store(chosen.options, number);
  return {};
}

} // namespace

const std::vector<planner_row>& catalog() {
  static const std::vector<planner_row> rows{
    {.name = "pipedream",
     .summary = "PipeDream's partitioner of stages with replicas, over machines.",
     .paper = "Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN "
              "Training, 2019",
     .methods = {of_kind<&pipedream>()}},
    {.name = "tarnawski",
     .summary = "Dynamic programme over ideals for pipelines on accelerators and CPUs.",
     .paper =
       "Tarnawski et al., Efficient Algorithms for Device Placement of DNN Graph "
       "Operators, 2020",
     .methods = {of_kind<&tarnawski>(), of_kind<&tarnawski_on_pipedream>()}},
    {.name = "tarnawski_ip",
     .summary = "Integer programme for contiguous parts, or for any.",
     .paper =
       "Tarnawski et al., Efficient Algorithms for Device Placement of DNN Graph "
       "Operators, 2020",
     .methods = {of_kind<&tarnawski_ip>()},
     .options = {"seconds"}},
    {.name = "piper",
     .summary = "Piper's dynamic programme: replicas, tensor degrees, recomputation.",
     .paper = "Tarnawski, Narayanan, Phanishayee, Piper: Multidimensional Planner for "
              "DNN Parallelization, 2021",
     .methods = {of_kind<&piper>(), of_kind<&piper_on_pipedream>()}},
    {.name = "alpa",
     .summary = "Alpa's dynamic programme of layers on submeshes.",
     .paper =
       "Zheng et al., Alpa: Automating Inter- and Intra-Operator Parallelism for "
       "Distributed Deep Learning, 2022",
     .methods = {of_kind<&alpa>(), of_kind<&alpa_on_pipedream>()}},
    {.name = "dapple",
     .summary = "DAPPLE's search: layers on devices by three placement rules.",
     .paper = "Fan et al., DAPPLE: A Pipelined Data Parallel Approach for Training "
              "Large Models, 2021",
     .methods = {of_kind<&dapple>(), of_kind<&dapple_on_pipedream>()}},
    {.name = "dapple_latency",
     .summary = "DAPPLE's estimate of a batch, for stages that are given.",
     .paper = "Fan et al., DAPPLE: A Pipelined Data Parallel Approach for Training "
              "Large Models, 2021",
     .methods = {of_kind<&latency_of_dapple>()}},
    {.name = "alpa_intra",
     .summary = "A strategy of each operator by an integer programme.",
     .paper =
       "Zheng et al., Alpa: Automating Inter- and Intra-Operator Parallelism for "
       "Distributed Deep Learning, 2022",
     .methods = {of_kind<&alpa_intra>()},
     .options = {"seconds"}},
    {.name = "tofu",
     .summary =
       "Strategies axis by axis: the best for each axis after the former ones.",
     .paper = "Wang, Huang, Li, Supporting Very Large Models using Automatic Dataflow "
              "Graph Partitioning, 2019",
     .methods = {of_kind<&tofu>()}},
    {.name = "mcmc",
     .summary = "Devices or strategies of operators by Metropolis' Markov chains.",
     .paper = "Jia, Zaharia, Aiken, Beyond Data and Model Parallelism for Deep Neural "
              "Networks, 2019",
     .methods = {of_kind<&mcmc_of_placement>(), of_kind<&mcmc_of_strategies>()},
     .options = {"seed", "chains", "proposals"}},
    {.name = "policy_gradient",
     .summary = "Devices of operators by a policy that learns from the step time.",
     .paper = "Mirhoseini et al., Device Placement Optimization with Reinforcement "
              "Learning, 2017",
     .methods = {of_kind<&policy_gradient>()},
     .options = {"seed", "samples"}},
    {.name = "bayes",
     .summary = "Options of a training by a Gaussian process and expected improvement.",
     .paper = "Snoek, Larochelle, Adams, Practical Bayesian Optimization of Machine "
              "Learning Algorithms, 2012",
     .methods = {of_kind<&bayes>()},
     .options = {"seed", "askings"}},
    {.name = "gspmd",
     .summary = "Layouts of all tensors from annotations of a few.",
     .paper =
       "Xu et al., GSPMD: General and Scalable Parallelization for ML Computation "
       "Graphs, 2021",
     .methods = {of_kind<&gspmd>()}},
    {.name = "learned",
     .summary = "PipeDream's stages with times that a learned model predicts.",
     .paper = "Qi, Sparks, Talwalkar, Paleo: A Performance Model for Deep Neural "
              "Networks, 2017",
     .methods = {of_kind<&learned>()},
     .options = {"costs"}},
    {.name = "exhaustive",
     .summary = "All plans of a small case: the optimum.",
     .methods = {of_kind<&exhaustive_pipedream>(), of_kind<&exhaustive_tarnawski>(),
                 of_kind<&exhaustive_piper>(), of_kind<&exhaustive_alpa>(),
                 of_kind<&exhaustive_dapple>(), of_kind<&exhaustive_placement>(),
                 of_kind<&exhaustive_intra>(), of_kind<&exhaustive_options>()}},
    {.name = "uniform",
     .summary = "Baseline: as many layers in each part.",
     .methods = cuts_of_layers<&uniform_sizes>()},
    {.name = "parameters",
     .summary = "Baseline: parts with nearly equal parameters, as DeepSpeed's.",
     .methods = cuts_of_layers<&parameter_sizes>()},
    {.name = "mincut",
     .summary = "Baseline: fewest bytes over cuts between parts of nearly equal time.",
     .methods = cuts_of_layers<&mincut_sizes>()},
  };
  return rows;
}

std::string names_of_planners() {
  std::string result;
  for (const auto& row : catalog())
    result += (result.empty() ? "" : ", ") + std::string{row.name};
  return result;
}

const method* planner_row::method_for(std::string_view kind) const {
  const auto match = std::ranges::find(methods, kind, &method::kind);
  return match == methods.end() ? nullptr : &*match;
}

tl::expected<chosen_planner, std::string> parse_planner(std::string_view text) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  const auto row = std::ranges::find(catalog(), name, &planner_row::name);
  if (row == catalog().end())
    return mistake{"there is no planner '" + std::string{name}
                   + "': --planner takes one of " + names_of_planners()};
  chosen_planner result{&*row, {}};
  while (!text.empty() && colon != text.npos) {
    text.remove_prefix(text.find_first_of(":,") + 1);
    const auto comma = text.find(',');
    if (const auto error = store_option(result, text.substr(0, comma)); !error.empty())
      return mistake{error};
    if (comma == text.npos)
      break;
  }
  return result;
}

outcome search(const chosen_planner& chosen, const any_problem& p) {
  const auto kind = kind_of(p);
  const auto* const matching = chosen.row->method_for(kind);
  if (matching)
    return matching->search(p, chosen.options);
  std::string able;
  for (const auto& row : catalog())
    if (row.method_for(kind))
      able += (able.empty() ? "" : ", ") + std::string{row.name};
  return mistake{"planner " + std::string{chosen.row->name}
                 + " does not answer a case of kind " + kind + ": --planner takes "
                 + (able.empty() ? "none here" : able)};
}

} // namespace troupe::planner
