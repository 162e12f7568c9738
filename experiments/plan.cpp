// plan: searches a plan for a network on devices, by published planners and baselines
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/options/help.hpp"
#include "experiments/options/parse_mistake.hpp"
#include "models/utf8.hpp"
#include "planner/case_file.hpp"
#include "planner/catalog.hpp"

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
};

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
  app.add_option("--case", request.case_file, "File with a problem, as JSON.")
    ->required();
  app.add_option("--planner", request.planner, "Planner.")->required();
  try {
    app.parse(argc, argv);
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
