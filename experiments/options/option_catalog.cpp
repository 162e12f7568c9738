// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/option_catalog.hpp"

#include "experiments/options/parsing.hpp"
#include "models/short_text.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <span>

namespace troupe {

namespace {

using row_group = option_rows (*)();

// Groups in the order of --help-all, the most used first.
constexpr row_group groups_of_runs[] = {
  study_rows,     model_rows,   data_rows,       schedule_rows,   mesh_rows,
  optimizer_rows, output_rows,  evaluation_rows, checkpoint_rows, run_rows,
  cost_rows,      machine_rows, node_rows,       expert_rows,     bench_rows};
constexpr row_group groups_of_inference[] = {weights_rows, text_rows,  data_rows,
                                             model_rows,   mesh_rows,  output_rows,
                                             run_rows,     expert_rows};
constexpr row_group groups_of_collectives[] = {collective_rows, output_rows};

std::span<const row_group> groups_of(const program_info& program) {
  if (program.exchanges)
    return groups_of_collectives;
  if (program.infers())
    return groups_of_inference;
  return groups_of_runs;
}

/// Recorded values that are no options, and the names of options for --change.
constexpr std::pair<std::string_view, std::string_view> parts_of_options[] = {
  {"TROUPE_BF16", "precision"}, {"clip of", "clip"}};

/// The schedules with their parameters, and the exchanges, for the end of --help-all.
std::string schedules_help() {
  std::string text = "Schedules:\n";
  for (const auto& entry : catalog()) {
    text += "  " + std::string{entry.name} + "\t" + std::string{entry.summary} + "\n";
    for (const auto& p : entry.parameters)
      text += "    " + std::string{p.name} + "=" + std::to_string(p.initial) + "\t"
              + std::string{p.meaning} + "\n";
  }
  text += "\nExchanges:";
  for (const auto& e : exchange_catalog())
    text += "\n  " + std::string{e.name} + "\t" + std::string{e.idea};
  return text;
}

/// The same for collectives.
std::string collectives_help() {
  std::string text = "Operations, each with an algorithm:";
  for (const auto& order : collective_catalog())
    text += "\n  " + std::string{name_of(order.operation)} + " "
            + std::string{order.name} + "\t" + std::string{order.idea};
  return text;
}

} // namespace

option_rows under(const std::string& heading, bool (*has)(const program_info&),
                  option_rows rows) {
  for (auto& row : rows) {
    row.heading = heading;
    if (row.rules.has == nullptr)
      row.rules.has = has;
  }
  return rows;
}

std::string with_name(std::string_view text, std::string_view option) {
  std::string result{text};
  if (const auto mark = result.find('%'); mark != std::string::npos)
    result.replace(mark, 1, option);
  return result;
}

option_rows joined(option_rows first, option_rows last) {
  std::ranges::move(last, std::back_inserter(first));
  return first;
}

std::string record_text(double value) {
  return exact_text(value);
}

const option_rows& all_rows() {
  static const auto rows = [] {
    option_rows result;
    const auto add = [&](std::span<const row_group> groups) {
      for (const auto group : groups)
        std::ranges::move(group(), std::back_inserter(result));
    };
    add(groups_of_runs);
    add(std::span{groups_of_inference}.first<2>()); // the other groups are of runs too
    add(groups_of_collectives);
    return result;
  }();
  return rows;
}

option_rows rows_of(const program_info& program) {
  option_rows result;
  for (const auto group : groups_of(program))
    for (auto& row : group())
      if (row.rules.has(program))
        result.push_back(std::move(row));
  return result;
}

recorded_in files_with(std::string_view recorded_name) {
  auto result = recorded_in::nothing;
  for (const auto& row : all_rows())
    if (row.recorded_name() == recorded_name)
      result = std::max(result, row.rules.record.files);
  return result;
}

std::map<std::string, std::string> recorded_options(const options& o,
                                                    const run_plan* training) {
  const auto least =
    training != nullptr ? recorded_in::checkpoints : recorded_in::weights;
  const run_view run{o, training != nullptr ? training->work->optimizer : o.optimizer,
                     training};
  std::map<std::string, std::string> result;
  for (const auto& row : all_rows())
    if (const auto& [files, value, condition] = row.rules.record;
        files >= least
        && (condition != nullptr ? condition : row.rules.effect.condition)(run))
      result[row.recorded_name()] = value(run);
  return result;
}

std::string change_name_of(std::string_view recorded_name) {
  for (const auto& [part, name] : parts_of_options)
    if (part == recorded_name)
      return std::string{name};
  for (const auto& row : all_rows())
    if (row.rules.changeable && row.recorded_name() == recorded_name)
      return row.recorded_name().substr(2);
  return {};
}

std::vector<std::string> change_names() {
  std::vector<std::string> result;
  for (const auto& row : all_rows())
    if (row.rules.changeable)
      result.push_back(row.recorded_name().substr(2));
  return result;
}

std::string help_of(std::string_view name) {
  const auto row = std::ranges::find(all_rows(), name, &option_row::name);
  return row == all_rows().end() ? "" : row->help;
}

std::string add_options(option_list& to, typed_options& typed,
                        const program_info& program) {
  for (const auto group : groups_of(program))
    for (const auto& row : group())
      if (row.rules.has(program)) {
        to.begin_group(row.heading);
        row.add(to, row, typed);
      }
  if (program.infers())
    return {};
  return program.exchanges ? collectives_help() : schedules_help();
}

} // namespace troupe
