// plan: searches a plan for a network on devices, by published planners and baselines
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/options/help.hpp"
#include "experiments/options/parse_mistake.hpp"
#include "models/utf8.hpp"
#include "planner/case_file.hpp"
#include "planner/catalog.hpp"
#include "planner/learned_costs.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

using namespace troupe;

namespace {

/// A mistake in the command line or in a case, as one sentence.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Value>
Value value_or_throw(tl::expected<Value, std::string> result) {
  if (!result)
    throw usage_error(result.error());
  return std::move(*result);
}

struct plan_request {
  std::filesystem::path case_file;
  std::string planner;
  std::filesystem::path measured_file; ///< With --learn.
  std::filesystem::path costs_file;    ///< With --learn.
};

/// Fits costs of operators to measured ones, for planner learned:costs=FILE.
int learn(const plan_request& request) {
  const auto measured =
    value_or_throw(planner::read_measured_operators(request.measured_file));
  const auto saved = planner::learned_costs::fit(measured).save(request.costs_file);
  if (!saved)
    throw usage_error(saved.error());
  std::cout << "costs of " << measured.size() << " measured operators are in "
            << request.costs_file.string()
            << ": give --planner learned:costs=" << request.costs_file.string() << '\n';
  return std::cout.flush() ? 0 : 1;
}

int answer(const plan_request& request) {
  const auto chosen = value_or_throw(planner::parse_planner(request.planner));
  const auto problem = value_or_throw(planner::read_case(request.case_file));
  const auto found = value_or_throw(planner::search(chosen, problem.content));
  std::cout << json_text(planner::to_json(found)) << '\n';
  return std::cout.flush() ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Searches a plan: which operators, layers or options on which devices. "
               "Prints {\"cost\": .., \"plan\": ..}, or {\"cost\": null} if nothing "
               "fits.",
               "plan"};
  add_help(app);
  plan_request request;
  auto* const problem =
    app.add_option("--case", request.case_file, "File with a problem, as JSON.");
  auto* const planner = app.add_option("--planner", request.planner, "Planner.");
  auto* const measured =
    app.add_option("--learn", request.measured_file,
                   "CSV file of measured operators: fits costs and writes --save.");
  auto* const saved =
    app.add_option("--save", request.costs_file, "File for the costs of --learn.");
  problem->needs(planner);
  planner->needs(problem);
  measured->needs(saved)->excludes(problem);
  saved->needs(measured);
  try {
    app.parse(argc, argv);
    if (*measured)
      return learn(request);
    if (!*problem)
      throw usage_error(
        "a plan needs --case FILE and --planner NAME; costs of operators "
        "need --learn FILE and --save FILE");
    return answer(request);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "plan: " << sentence_of(app, error) << "; see plan --help\n";
    return 2;
  } catch (const usage_error& error) {
    std::cerr << "plan: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "plan: " << error.what() << '\n';
    return 1;
  }
}
