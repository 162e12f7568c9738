// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/options/schedule_options.hpp"
#include "models/input_file.hpp"
#include "models/short_text.hpp"
#include "plan/deciding_facts.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace troupe {

namespace {

constexpr std::string_view prefix = "file:";

using value_map = std::map<std::string, std::string>;

/// The values after a schedule's name. The error is one sentence with the allowed form.
tl::expected<value_map, std::string> values_of(const std::string& text) {
  value_map result;
  // A file's path stands where other schedules have the first parameter.
  const auto begin = text.find(names_file(text) ? ',' : ':');
  if (begin == std::string::npos)
    return result;
  const problem shape{"'" + text
                      + "' is no schedule: write NAME:parameter=value, with a comma "
                        "before each further parameter"};
  const auto parts = split(text.substr(begin + 1), ',');
  for (const auto& part : parts) {
    const auto equals = part.find('=');
    if (equals == std::string::npos || equals == 0)
      return shape;
    auto key = part.substr(0, equals);
    std::ranges::replace(key, '-', '_');
    if (!result.emplace(key, part.substr(equals + 1)).second)
      return problem{"'" + text + "' has " + key + "= twice: give " + key + "= once"};
  }
  if (parts.empty())
    return shape;
  return result;
}

/// The sentence about a schedule that does not exist.
std::string unknown_schedule(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& entry : catalog())
    names.emplace_back(entry.name);
  names.emplace_back("all");
  std::error_code unknown;
  const bool is_file = std::filesystem::is_regular_file(name, unknown);
  if (is_file || name.find_first_of("./") != std::string::npos)
    return is_file ? "'" + name + "' is a file: say --schedule file:" + name
                   : "there is no schedule and no file '" + name
                       + "': say --schedule file:PATH for a schedule in a file";
  return unknown_name("schedule", name, names);
}

/// The suggestion to append to the sentence about an unknown parameter of a schedule.
std::string parameter_near(const catalog_entry& entry, const value_map& values) {
  std::vector<std::string> names;
  for (const auto& p : entry.parameters)
    names.emplace_back(p.name);
  for (const auto& [key, value] : values)
    if (std::ranges::find(names, key) == names.end())
      return did_you_mean(key, names);
  return {};
}

/// Reads numbers from "4,4,2". Returns one sentence about a mistake, else an empty
/// text.
std::string read_numbers(const char* option, const std::string& text,
                         std::vector<std::int64_t>& to) {
  for (const auto& part : split(text, ',')) {
    const auto value = whole_number<std::int32_t>(part);
    if (!value || *value < 1)
      return std::string{option} + " " + text
             + ": write whole numbers above 0, for example 4,4,2,2";
    to.push_back(*value);
  }
  return {};
}

bool records_microbatches(run_view run) {
  return depends_on_microbatches(*run.training);
}

std::string recorded_sizes(run_view run) {
  return joined(uneven_sizes(*run.training));
}

std::string help_of_schedules(const std::string& parameters) {
  return "Schedules, with commas between them: " + catalog_names() + ".\n"
         + "all\tevery schedule that fits the sizes\n"
           "NAME:KEY=VALUE,..\ta schedule with parameters, for example ampnet:"
         + parameters
         + "\n"
           "file:PATH\tschedule in PyTorch's format, for example "
           "file:my.csv,weights=stash. update_every= gives the microbatches of an "
           "update, most_held= the microbatches that a rank may hold\n"
           "file:PATH,weights=RULE\trule of weight versions: flush, stash, "
           "vertical_sync, double_buffered or latest; flush if not given";
}

} // namespace

std::vector<std::string> single_schedules(const std::vector<std::string>& names) {
  std::vector<std::string> result;
  for (const auto& name : names)
    for (const auto& part : split(name, ',')) {
      const bool parameter =
        part.find('=') != std::string::npos && part.find(':') == std::string::npos;
      if (parameter && !result.empty())
        result.back() += "," + part;
      else
        result.push_back(part);
    }
  if (result.empty())
    result.emplace_back(); // so that parsing refuses the empty name
  return result;
}

option_rows schedule_rows() {
  constexpr auto group = &typed_options::schedules;
  using typed = typed_schedules;
  using enum recorded_in;
  return under(
    "Schedule and mesh", programs::without_measurements,
    {row<group, &typed::names>(
       "--schedules,--schedule", help_of_schedules("max_active_keys=8,lr=0.01"),
       {.has = [](const program_info& p) { return p.trains && !p.measures; }}),
     row<group, &typed::names>(
       "--schedules,--schedule", help_of_schedules("max_active_keys=8"),
       {.has = [](const program_info& p) { return !p.trains && !p.measures; }}),
     row<group, &typed::steps>(
       "--steps", "Number of batches of the run.",
       {.effect =
          {[](run_view r) { return !r.o.schedules.epochs; },
           "and --epochs both give the length of a run: leave --steps or --epochs out"},
        .record = {checkpoints,
                   [](run_view r) {
                     const auto& dims = r.training->dims;
                     return record_text(dims.batches_before + dims.steps);
                   },
                   every_run},
        .changeable = true}),
     row<group, &typed::epochs>(
       "--epochs", "Number of passes over the data, in place of --steps.",
       {.has = [](const program_info& p) { return p.trains && !p.measures; }}),
     row<group, &typed::microbatches>(
       "--microbatches", "Number of microbatches that a batch is cut into.",
       {.has = programs::all,
        .record = {checkpoints,
                   [](run_view r) {
                     return record_text(r.training->batches().microbatches);
                   },
                   records_microbatches},
        .changeable = true}),
     row<group, &typed::sizes>(
       "--microbatch-sizes",
       "Samples of each microbatch of a batch, for example 4,4,2,2. Default: sizes "
       "that differ by at most 1. In simulations sizes scale costs and messages.",
       {.record = {checkpoints, recorded_sizes, records_microbatches},
        .changeable = true}),
     row<group, &typed::lengths>(
       "--sequence-lengths",
       "Tokens of a sample, for each microbatch in rotation. With 64,32 the first "
       "microbatch has 64, the second 32, the third 64. Samples keep their first "
       "tokens. Default: --seq. In simulations tokens scale costs and messages.",
       {.record = {checkpoints,
                   [](run_view r) { return joined(r.o.schedules.uneven.lengths); }},
        .changeable = true})});
}

tl::expected<chosen_schedule, std::string>
parse_schedule(const std::string& text, bool of_all,
               const optimizer_options* default_optimizer, const std::string* file) {
  auto values = values_of(text);
  if (!values)
    return problem{values.error()};
  chosen_schedule result{.text = text,
                         .of_all = of_all,
                         .name = text.substr(0, text.find(':')),
                         .values = *values,
                         .sch = {},
                         .optimizer = {}};
  if (default_optimizer != nullptr) {
    const auto run_optimizer = optimizer_of_run(*default_optimizer, *values);
    if (!run_optimizer)
      return problem{(names_file(text) ? text.substr(0, text.find(',')) : result.name)
                     + ": " + run_optimizer.error()};
    result.optimizer = *run_optimizer;
  }
  if (names_file(text)) {
    const auto path = path_of_schedule(text);
    auto content = file != nullptr ? *file : read_schedule_file(path);
    if (!content)
      return problem{content.error()};
    auto filed = schedule_in(path, *content, *values);
    if (!filed)
      return problem{filed.error()};
    result.sch = std::move(filed->sch);
    result.sizes = filed->dims;
    result.file = std::move(*content);
    return result;
  }
  const auto entry = std::ranges::find(catalog(), result.name, &catalog_entry::name);
  if (entry == catalog().end())
    return problem{unknown_schedule(result.name)};
  auto sch = find_schedule(result.name, *values);
  if (!sch)
    return problem{sch.error() + parameter_near(*entry, *values)};
  result.sch = std::move(*sch);
  return result;
}

bool measures_times(const chosen_schedule& chosen) {
  const auto entry = chosen.values.find("measured");
  return chosen.name == "zb-auto" && entry != chosen.values.end()
         && (entry->second == "on" || entry->second == "true" || entry->second == "1");
}

// Parses each file with an arbitrary optimizer, as only the sizes matter here.
std::string set_sizes_from_files(typed_schedules& to, typed_mesh& mesh) {
  std::string first; // of the files
  for (const auto& text : single_schedules(to.names)) {
    if (!names_file(text))
      continue;
    optimizer_options any;
    any.clip = 1; // a norm, so that clip=stage is allowed too
    const auto chosen = parse_schedule(text, false, &any, to.text_of(text));
    if (!chosen)
      return chosen.error();
    const auto& dims = *chosen->sizes;
    mesh_options axes{.stages = mesh.stages};
    if (auto error = read_axes(mesh.axes, axes); !error.empty())
      return error;
    const int ranks = ranks_of(chosen->sch.where, dims),
              microbatches = dims.microbatches * axes.data;
    const auto size_error = [&](bool said, int typed, int has, const std::string& noun,
                                const char* option) {
      if (!said || typed == has)
        return std::string{};
      const auto is = text + " is written for " + std::to_string(has) + " " + noun
                      + (has == 1                  ? ""
                         : noun.ends_with("batch") ? "es"
                                                   : "s");
      return first.empty() ? is + ", not for " + std::to_string(typed) + ": leave "
                               + option + " out"
                           : is + ", and " + first + " for " + std::to_string(typed)
                               + ": name schedules of equal sizes";
    };
    const bool says_pipe = mesh.axes.find("pipe=") != std::string::npos;
    for (auto error : {size_error(mesh.says_stages || says_pipe, axes.stages, ranks,
                                  "rank", "--stages or pipe="),
                       size_error(to.says_microbatches, to.microbatches, microbatches,
                                  "microbatch", "--microbatches"),
                       size_error(to.says_steps && chosen->sch.asynchronous(), to.steps,
                                  dims.steps, "batch", "--steps")})
      if (!error.empty())
        return error;
    first = text;
    if (!says_pipe)
      mesh.stages = ranks;
    to.microbatches = microbatches;
    mesh.says_stages = to.says_microbatches = true; // for a second file
    if (chosen->sch.asynchronous())
      to.steps = dims.steps;
    to.says_steps = to.says_steps || chosen->sch.asynchronous();
  }
  return {};
}

tl::expected<schedule_options, std::string>
parse(const typed_schedules& typed, const mesh_options& mesh,
      const optimizer_options* default_optimizer) {
  if (typed.steps < 1)
    return problem{"--steps " + std::to_string(typed.steps)
                   + ": a run has at least 1 step"};
  if (typed.microbatches < 1)
    return problem{"--microbatches " + std::to_string(typed.microbatches)
                   + ": a batch has at least 1 microbatch"};
  if (typed.microbatches % mesh.data != 0)
    return problem{std::to_string(typed.microbatches)
                   + " microbatches cannot be divided between "
                   + std::to_string(mesh.data)
                   + " data replicas: give --microbatches that is a multiple of data="};
  schedule_options result{{}, typed.microbatches, typed.steps, typed.epochs};
  auto error = read_numbers("--microbatch-sizes", typed.sizes, result.uneven.samples);
  if (error.empty())
    error = read_numbers("--sequence-lengths", typed.lengths, result.uneven.lengths);
  if (!error.empty())
    return problem{error};
  const auto texts = single_schedules(typed.names);
  const auto add = [&](const std::string& text, bool of_all) {
    auto parsed = parse_schedule(text, of_all, default_optimizer, typed.text_of(text));
    if (!parsed)
      return parsed.error();
    result.chosen.push_back(std::move(*parsed));
    return std::string{};
  };
  for (const auto& text : texts) {
    if (text.empty() && texts.size() > 1)
      return problem{"--schedules has an empty name: write one comma between two "
                     "schedules, for example --schedules gpipe,1f1b"};
    if (std::ranges::count(texts, text) > 1)
      return problem{text + " is named twice in --schedules: name each schedule once"};
    if (text != "all") {
      if (error = add(text, false); !error.empty())
        return problem{error};
      continue;
    }
    for (const auto& entry : catalog())
      if (std::ranges::count(texts, entry.name) == 0)
        if (error = add(std::string{entry.name}, true); !error.empty())
          return problem{error};
  }
  return result;
}

const std::string* typed_schedules::text_of(const std::string& text) const {
  const auto entry =
    names_file(text) ? texts.find(path_of_schedule(text)) : texts.end();
  return entry == texts.end() ? nullptr : &entry->second;
}

bool names_file(const std::string& text) {
  return text.starts_with(prefix);
}

std::string path_of_schedule(const std::string& text) {
  return text.substr(prefix.size(), text.find(',') - prefix.size());
}

tl::expected<std::string, std::string> read_schedule_file(const std::string& path) {
  constexpr std::int64_t largest = 256 << 20;
  const auto file = input_file::open(path, "the schedule file");
  if (!file)
    return tl::unexpected{file.error()};
  if (file->size() > largest)
    return tl::unexpected{"the schedule file " + path
                          + " is larger than 256 MiB, the most that is read"};
  try {
    return without_byte_order_mark(file->content());
  } catch (const std::runtime_error& error) {
    return tl::unexpected{std::string{error.what()}};
  }
}

tl::expected<filed_schedule, std::string>
schedule_in(const std::string& path, const std::string& text,
            const std::map<std::string, std::string>& values) {
  const auto file = std::filesystem::path{path}.filename().string();
  return read_schedule(std::string{prefix} + file, text, values);
}

} // namespace troupe
