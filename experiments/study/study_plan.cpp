// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/study/study_plan.hpp"

#include "experiments/options/option_catalog.hpp"
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/options/study_options.hpp"
#include "experiments/session/programs.hpp"
#include "models/utf8.hpp"
#include "schedules/catalog/catalog.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>

namespace troupe {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(study_run, schedule, values, seed, words)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(study_plan, program, command, varied, fixed, runs)

namespace {

constexpr std::size_t most_runs = 20'000; // each keeps a curve of losses

std::optional<option_row> row_of(const std::string& option,
                                 const program_info& program) {
  for (auto& row : rows_of(program))
    if (std::ranges::count(split(row.names, ','), option) > 0)
      return std::move(row);
  return {};
}

/// Whether each run of a study has its own value, which the study gives.
bool belongs_to_study(const option_row& row) {
  return row.heading == "Study" || row.heading == "Output"
         || row.name() == "--schedules";
}

std::vector<std::string> names_to_vary(const program_info& repeated) {
  std::vector<std::string> result;
  for (const auto& row : rows_of(repeated))
    if (!belongs_to_study(row))
      result.push_back(row.name().substr(2));
  return result;
}

/// One sentence about an option that cannot be varied, else an empty text.
std::string error_in(const varied_option& varied, const program_info& repeated,
                     int seeds) {
  const auto row = row_of("--" + varied.name, repeated);
  if (!row)
    return "--vary: " + unknown_name("option", varied.name, names_to_vary(repeated));
  if (row->name() == "--schedules")
    return "--vary " + varied.name
           + ": schedules always vary: name them by --schedules instead";
  if (belongs_to_study(*row))
    return "--vary " + varied.name + ": each run has a file of its own: leave "
           + varied.name + " out";
  if (row->name() == "--seed" && seeds > 1)
    return "--vary seed and --seeds both give seeds: leave --vary seed or --seeds out";
  return {};
}

/// "--lr=0.1", or "--tied" for a flag that is true, or an empty word for one that is
/// false.
std::string word_of(const std::string& name, const std::string& value, bool is_flag) {
  if (!is_flag || (value != "true" && value != "false"))
    return "--" + name + "=" + value;
  return value == "true" ? "--" + name : "";
}

/// Flags are the rows whose values go to a bool.
bool is_flag(const option_row& row) {
  typed_options typed;
  CLI::App app;
  option_list list{app};
  return row.add(list, row, typed)->get_expected_max() == 0;
}

struct typed_parts {
  std::vector<std::pair<std::string, std::string>> fixed;
  std::vector<std::string> words;
};

/// The typed options that all runs share.
typed_parts shared_by_runs(const program_info& repeated, const typed_words& typed) {
  typed_parts result;
  for (const auto& word : typed.words) {
    const auto name = word.substr(0, word.find('='));
    const auto row = row_of(name, repeated);
    if (!row || belongs_to_study(*row) || name == "--seed")
      continue;
    result.words.push_back(word);
    result.fixed.emplace_back(name.substr(2), word.size() > name.size()
                                                ? word.substr(name.size() + 1)
                                                : "true");
  }
  return result;
}

/// The words that begin the command of every run.
std::vector<std::string> first_words(const program_info& repeated) {
  return {repeated.name, "--quiet", "--json=-"};
}

/// The names of all options that a study may give to a run.
std::set<std::string> passed_names(const program_info& repeated) {
  std::set<std::string> result{"--schedule"};
  for (const auto& row : rows_of(repeated))
    if (!belongs_to_study(row))
      for (const auto& name : split(row.names, ','))
        result.insert(name);
  return result;
}

std::vector<std::string> schedules_of(const typed_options& typed) {
  std::vector<std::string> result;
  for (const auto& text : single_schedules(typed.schedules.names)) {
    if (text != "all") {
      result.push_back(text);
      continue;
    }
    for (const auto& entry : catalog())
      result.emplace_back(entry.name);
  }
  return result;
}

} // namespace

bool has_seeds(const study_plan& plan) {
  return std::ranges::any_of(plan.runs, [](const auto& r) { return !r.seed.empty(); });
}

bool is_program(std::string_view name) {
  return name == "compare" || name == "simulate";
}

program_info study_of(const program_info& repeated) {
  auto result = repeated;
  result.name = "study";
  result.description =
    "Study of schedules: runs " + repeated.name
    + " for every combination of schedules, values of options and seeds. Writes a page "
      "and two tables. Usage: study compare or study simulate, then options.";
  result.draws = false;
  result.studies = true;
  result.defaults.output.new_report = "runs/study";
  return result;
}

tl::expected<study_plan, std::string> plan_study(const program_info& repeated,
                                                 const typed_words& typed,
                                                 std::vector<std::string> command) {
  const auto& asked = typed.typed.study;
  std::vector<varied_option> varied;
  std::vector<bool> flags;
  for (const auto& text : asked.varied) {
    auto option = parse_varied(text);
    if (!option)
      return problem{option.error()};
    if (auto error = error_in(*option, repeated, asked.seeds); !error.empty())
      return problem{error};
    const auto row = row_of("--" + option->name, repeated);
    option->name = row->name().substr(2);
    if (std::ranges::count(varied, option->name, &varied_option::name) > 0)
      return problem{"--vary names " + option->name
                     + " twice: give all its values at once"};
    for (const auto& word : typed.words)
      if (word == row->name() || word.starts_with(row->name() + "="))
        return problem{row->name() + " and --vary both give " + option->name
                       + ": leave " + row->name() + " out"};
    flags.push_back(is_flag(*row));
    varied.push_back(std::move(*option));
  }
  const auto first_seed = typed.typed.data.seed;
  if (std::numeric_limits<std::uint64_t>::max() - first_seed
      < static_cast<std::uint64_t>(asked.seeds) - 1)
    return problem{"--seed " + std::to_string(first_seed)
                   + " leaves no room for --seeds: give a smaller --seed"};
  auto shared = shared_by_runs(repeated, typed);
  study_plan result{.program = repeated.name,
                    .command = std::move(command),
                    .varied = {},
                    .fixed = std::move(shared.fixed),
                    .runs = {}};
  const auto schedules = schedules_of(typed.typed);
  for (const auto& schedule : schedules)
    if (std::ranges::count(schedules, schedule) > 1)
      return problem{"--schedules has " + schedule + " twice: name each schedule once"};
  auto count = schedules.size() * static_cast<std::size_t>(asked.seeds);
  for (const auto& option : varied) {
    result.varied.push_back(option.name);
    count = std::min(count, most_runs + 1) * option.values.size();
  }
  if (count > most_runs)
    return problem{"--vary and --seeds give " + std::to_string(count)
                   + " runs or more: give at most " + std::to_string(most_runs)};
  const bool has_seed = repeated.trains && !std::ranges::count(result.varied, "seed");
  for (std::vector<std::size_t> at(varied.size(), 0);;) {
    for (int s = 0; s < asked.seeds; ++s)
      for (const auto& schedule : schedules) {
        study_run run{schedule, {}, "", first_words(repeated)};
        run.words.insert(run.words.end(), shared.words.begin(), shared.words.end());
        for (std::size_t i = 0; i < varied.size(); ++i) {
          run.values.push_back(varied[i].values[at[i]]);
          if (auto word = word_of(varied[i].name, run.values.back(), flags[i]);
              !word.empty())
            run.words.push_back(std::move(word));
        }
        run.words.push_back("--schedule=" + schedule);
        if (has_seed) {
          run.seed = std::to_string(first_seed + static_cast<std::uint64_t>(s));
          run.words.push_back("--seed=" + run.seed);
        }
        result.runs.push_back(std::move(run));
      }
    auto i = varied.size(); // the last option changes fastest
    while (i > 0 && ++at[i - 1] == varied[i - 1].values.size())
      at[--i] = 0;
    if (i == 0)
      return result;
  }
}

std::string to_text(const study_plan& plan) {
  return json_text(nlohmann::json(plan), 1) + "\n";
}

study_plan study_from(const std::string& text) {
  auto plan = nlohmann::json::parse(text).get<study_plan>();
  if (!is_program(plan.program) || plan.runs.empty())
    throw std::invalid_argument{"no plan of a study"};
  const auto repeated = session_program(plan.program);
  const auto first = first_words(repeated);
  const auto passed = passed_names(repeated);
  for (const auto& run : plan.runs)
    if (run.values.size() != plan.varied.size() || run.words.size() < first.size()
        || !std::equal(first.begin(), first.end(), run.words.begin())
        || !std::ranges::all_of(
          std::span{run.words}.subspan(first.size()), [&](const std::string& word) {
            return passed.contains(word.substr(0, word.find('=')));
          }))
      throw std::invalid_argument{"no run of a study"};
  return plan;
}

} // namespace troupe
