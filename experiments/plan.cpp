// plan: searches a plan for a network on devices, by published planners and baselines
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/options/help.hpp"
#include "experiments/options/option_row.hpp"
#include "experiments/options/output_places.hpp"
#include "experiments/options/parse_mistake.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/report/plan_report.hpp"
#include "experiments/session/counted_problem.hpp"
#include "models/short_text.hpp"
#include "models/utf8.hpp"
#include "models/whole_file.hpp"
#include "planner/case_file.hpp"
#include "planner/catalog.hpp"
#include "planner/learned_costs.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

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

/// The options of a model belong to a program that computes with one.
const program_info program{.name = "plan", .description = ""};

struct plan_request {
  std::filesystem::path case_file;
  bool has_model = false;
  typed_model model;
  std::int64_t batch = 16;
  planned_devices devices;
  std::string planner;
  std::string planners; ///< Several names with commas, or all.
  std::filesystem::path page_file, results_file;
  std::filesystem::path measured_file; ///< With --learn.
  std::filesystem::path costs_file;    ///< With --learn.
};

/// One sentence if a file is written twice, or written and read, else an empty text.
std::string files_error(const plan_request& request) {
  std::vector<named_file> written, read;
  for (const auto& [option, file] : {std::pair{"--json", request.results_file},
                                     {"--page", request.page_file},
                                     {"--save", request.costs_file}})
    if (!file.empty())
      written.push_back({option, file});
  for (const auto& [option, file] :
       {std::pair{"--case", request.case_file}, {"--learn", request.measured_file}})
    if (!file.empty())
      read.push_back({option, file});
  return written_twice(written, read);
}

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

/// Warns about members of a case that no planner reads, as a misspelt one.
void tell_unknown(const planner::named_problem& problem,
                  const std::filesystem::path& file) {
  if (problem.unknown.empty())
    return;
  std::cerr << "plan: " << file.string() << ": "
            << printable(first_three(problem.unknown))
            << (problem.unknown.size() > 1 ? " are" : " is")
            << " ignored: cases of kind " << planner::kind_of(problem.content)
            << " have no such member\n";
}

/// The problem of a file, or of a model on equal devices.
planner::named_problem problem_of(const plan_request& request) {
  if (!request.has_model) {
    auto result = value_or_throw(planner::read_case(request.case_file));
    tell_unknown(result, request.case_file);
    return result;
  }
  const auto& [count, bandwidth, memory] = request.devices;
  constexpr int most_devices = 1024;
  constexpr std::int64_t most_samples = 1 << 20;
  if (count < 1 || count > most_devices)
    throw usage_error("--devices " + std::to_string(count)
                      + ": give 1 to 1024 devices");
  if (request.batch < 1 || request.batch > most_samples)
    throw usage_error("--batch " + std::to_string(request.batch)
                      + ": a minibatch has 1 to 1,048,576 samples");
  if (!(bandwidth > 0) || (memory && !(*memory > 0)))
    throw usage_error("--bandwidth and --memory-limit are numbers of bytes above 0");
  const auto model = value_or_throw(parse(request.model, 1));
  const auto whole = value_or_throw(make_network<float>(model));
  return {model.model, counted_problem(whole, request.batch, request.devices)};
}

int answer(const plan_request& request) {
  const auto chosen = value_or_throw(planner::parse_planner(request.planner));
  const auto problem = problem_of(request);
  const auto found = value_or_throw(planner::search(chosen, problem.content));
  std::cout << json_text(planner::to_json(found)) << '\n';
  if (!found.best)
    std::cerr << "plan: no plan fits: give more memory, or more devices\n";
  if (!found.remark.empty())
    std::cerr << "plan: " << printable(found.remark) << '\n';
  return std::cout.flush() ? 0 : 1;
}

/// Names with commas. A comma within options, as in mcmc:seed=1,chains=2, belongs to
/// the name before.
std::vector<std::string> split_planners(const std::string& names) {
  std::vector<std::string> result;
  for (const auto& part : split(names, ',')) {
    const bool is_option = part.find('=') != part.npos && part.find(':') == part.npos;
    if (is_option && !result.empty())
      result.back() += "," + part;
    else
      result.push_back(part);
  }
  return result;
}

/// The planners that --planners names; `all`: those that answer the kind.
std::vector<std::string> asked_planners(const std::string& names,
                                        const planner::any_problem& problem) {
  if (names.empty())
    throw usage_error("--planners is empty: name planners with commas, or all");
  if (names != "all")
    return split_planners(names);
  std::vector<std::string> result;
  for (const auto& row : planner::catalog())
    // A learned cost model needs a file.
    if (row.method_for(planner::kind_of(problem)) && row.name != "learned")
      result.emplace_back(row.name);
  return result;
}

planned_row planned_by(const std::string& name, const planner::any_problem& problem) {
  const auto chosen = value_or_throw(planner::parse_planner(name));
  planned_row result{.planner = name, .paper = std::string{chosen.row->paper}};
  const auto begin = std::chrono::steady_clock::now();
  auto found = planner::search(chosen, problem);
  result.search_ms =
    std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
  if (!found) {
    result.error = found.error();
    return result;
  }
  result.found = std::move(*found);
  if (!result.found.best)
    return result;
  if (const auto judged = planner::judge(problem, *result.found.best))
    result.judged = *judged;
  else
    result.broken_rule = judged.error();
  return result;
}

void write_or_throw(const std::filesystem::path& path, const std::string& content) {
  if (path.empty())
    return;
  if (const auto error = write_whole_file(path, content); !error.empty())
    throw usage_error(error);
}

/// Asks several planners, and prints a table.
int compare(const plan_request& request, const std::string& command) {
  planned_case planned{.problem = problem_of(request)};
  const auto& problem = planned.problem.content;
  for (const auto& name : asked_planners(request.planners, problem))
    planned.rows.push_back(planned_by(name, problem));
  for (const auto& row : planned.rows)
    if (row.planner == "exhaustive")
      planned.optimum = row.judged;
  if (!planned.optimum)
    planned.optimum = planned_by("exhaustive", problem).judged;
  const auto results = plan_json(planned, command);
  write_or_throw(request.page_file, plan_page(results));
  const bool prints_results = request.results_file == "-";
  write_or_throw(prints_results ? "" : request.results_file, results);
  std::cout << (prints_results ? results : plan_table(planned));
  return std::cout.flush() ? 0 : 1;
}

std::string command_of(int argc, char** argv) {
  std::string result = "plan";
  for (int i = 1; i < argc; ++i)
    result += std::string{" "} + argv[i];
  return result;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Searches a plan: which operators, layers or options on which devices. "
               "Prints {\"cost\": .., \"plan\": ..}, or {\"cost\": null} if nothing "
               "fits.",
               "plan"};
  app.option_defaults()->always_capture_default();
  add_help(app);
  plan_request request;
  auto* const problem =
    app.add_option("--case", request.case_file, "File with a problem, as JSON.");
  typed_options typed;
  typed.model.layers = 12;
  option_list list{app};
  std::vector<CLI::Option*> of_models;
  for (const auto& rows : {model_rows(), expert_rows()})
    for (const auto& row : rows)
      if (row.rules.has(program)) {
        list.begin_group(
          "Model, in place of --case: times are counted from operations");
        of_models.push_back(row.add(list, row, typed));
      }
  of_models.insert(
    of_models.end(),
    {list.add_option("--batch", request.batch, "Samples of a minibatch of --model."),
     list.add_option("--devices", request.devices.count, "Equal devices for --model."),
     list.add_option("--bandwidth", request.devices.bandwidth,
                     "Bytes a second between two devices."),
     list.add_option("--memory-limit", request.devices.memory,
                     "Bytes of a device. Default: no limit.")});
  auto* const model = app.get_option("--model");
  for (auto* const option : of_models)
    if (option != model)
      option->needs(model);
  auto* const planner = app.add_option("--planner", request.planner,
                                       "Planner, also with options: mcmc:seed=3. There "
                                       "are "
                                         + planner::names_of_planners() + ".");
  auto* const planners =
    app.add_option("--planners", request.planners,
                   "Several planners with commas, or all, for a table of their plans.");
  auto* const page = app.add_option("--page", request.page_file,
                                    "HTML file for the table and drawings of plans.");
  auto* const results = app.add_option("--json", request.results_file,
                                       "JSON file for the table's numbers.");
  auto* const measured =
    app.add_option("--learn", request.measured_file,
                   "CSV file of measured operators: fits costs and writes --save.");
  auto* const saved =
    app.add_option("--save", request.costs_file, "File for the costs of --learn.");
  planner->excludes(planners);
  problem->excludes(model);
  page->needs(planners);
  results->needs(planners);
  measured->needs(saved)->excludes(problem)->excludes(model);
  measured->excludes(planner)->excludes(planners);
  saved->needs(measured);
  try {
    app.parse(argc, argv);
    if (auto error = files_error(request); !error.empty())
      throw usage_error(error);
    if (*measured)
      return learn(request);
    request.has_model = bool(*model);
    request.model = typed.model;
    if ((!*planner && !*planners) || (!*problem && !*model))
      throw usage_error("a plan needs --case FILE or --model NAME, and --planner NAME; "
                        "a table needs --planners all in place of --planner; costs of "
                        "operators need --learn and --save");
    if (*planners)
      return compare(request, command_of(argc, argv));
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
