// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/files.hpp"

#include "experiments/options/parsing.hpp"
#include "experiments/options/saved_options.hpp"
#include "experiments/options/schedule_options.hpp"
#include "experiments/report/page.hpp"
#include "experiments/report/trace.hpp"
#include "models/data/data_name.hpp"
#include "models/hugging_face.hpp"
#include "models/short_text.hpp"
#include "models/weights.hpp"
#include "models/whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <tuple>

namespace troupe {

namespace {

using std::filesystem::path;

/// The text of a run as a part of a file's name.
std::string name_of(const run_request& request) {
  auto name = request.text;
  std::ranges::replace(name, '/', '_');
  return name;
}

/// The files that the options read. A single run may save weights over the file of its
/// initial weights. With several runs, the second would then begin with other weights.
std::vector<named_file> read_files(const options& o, std::size_t runs) {
  std::vector<named_file> result;
  const auto add = [&](const char* option, const std::string& file) {
    if (!file.empty())
      result.push_back({option, file});
  };
  add("--config", o.output.config);
  for (const auto& chosen : o.schedules.chosen)
    if (chosen.sizes)
      add("--schedule", path_of_schedule(chosen.text));
  add("--data", o.data.path);
  add("--evaluate-data", parse_data_name(o.data.evaluation).path);
  add("--machines", o.machines.links);
  add("--machines", o.collectives.machines.links);
  if (runs > 1 || o.output.save.empty())
    add("--init", o.data.init);
  return result;
}

/// The origin of the weights: options, data, and the number of the update. The number
/// is one if all stages have the same update, else one for each stage.
file_metadata metadata_of(const options& o, const run_plan& plan,
                          const run_result& result) {
  const bool has_one_update = std::ranges::count(result.updates, result.updates.front())
                              == std::ssize(result.updates);
  auto metadata = facts_to_save(o, plan.work->data->identity());
  metadata[has_one_update ? "update" : "updates"] =
    has_one_update ? std::to_string(result.updates.front()) : joined(result.updates);
  metadata["samples"] = std::to_string(result.updated_samples);
  return metadata;
}

} // namespace

output_files::~output_files() {
  std::error_code ignored; // a folder with content stays
  if (made_report_)
    std::filesystem::remove(report_, ignored);
  if (made_events_)
    std::filesystem::remove(output_.tensorboard, ignored);
}

path output_files::weights_of(const run_request& request, bool only_run) const {
  path file = output_.save;
  if (!only_run)
    file.replace_filename(file.stem().string() + "-" + name_of(request)
                          + file.extension().string());
  return file;
}

path output_files::trace_of(const run_request& request) const {
  return report_ / ("trace-" + name_of(request) + ".json");
}

path output_files::events_of(const run_request& request) const {
  return output_.tensorboard.empty() ? path{}
                                     : path{output_.tensorboard} / name_of(request);
}

bool output_files::writes_json() const {
  return !output_.json.empty() && !output_.results_on_stdout();
}

std::vector<named_file>
output_files::planned(const std::vector<run_request>& runs) const {
  std::vector<named_file> result;
  for (const auto& request : runs)
    if (!output_.save.empty()) {
      const auto file = weights_of(request, runs.size() == 1);
      result.push_back({"--save", file});
      const auto config = config_beside(file, request.plan.work->whole.options);
      if (!config.empty())
        result.push_back({"--save", config});
    }
  if (writes_json())
    result.push_back({"--json", output_.json});
  if (!output_.exported.empty())
    result.push_back({"--export", output_.exported});
  if (report_.empty())
    return result;
  result.push_back({"--report", report_ / "results.json"});
  if (!runs.empty())
    result.push_back({"--report", page_file()});
  for (const auto& request : runs)
    result.push_back({"--report", trace_of(request)});
  return result;
}

std::string output_files::make_report() {
  std::error_code failed;
  if (output_.makes_new_report()) {
    report_ = make_dated_folder(output_.new_report, failed);
    made_report_ = !failed;
  } else if (!report_.empty()) {
    made_report_ = std::filesystem::create_directories(report_, failed);
  }
  if (failed)
    return "--report cannot make the folder " + report_.string() + " ("
           + failed.message() + "): name another folder";
  if (!report_.empty() && !lock_.try_lock(report_))
    return "another program is writing into --report " + report_.string()
           + ": name another folder";
  return {};
}

/// Each run gets a folder there; folders of earlier runs stay.
std::string output_files::make_events(const std::vector<run_request>& runs) {
  const path root = output_.tensorboard;
  if (root.empty())
    return {};
  std::error_code failed;
  made_events_ = std::filesystem::create_directories(root, failed);
  if (failed)
    return "--tensorboard cannot make the folder " + root.string() + " ("
           + failed.message() + "): name another folder";
  for (const auto& request : runs) {
    const auto run_folder = events_of(request);
    const auto& where = std::filesystem::exists(run_folder, failed) ? run_folder : root;
    if (!std::filesystem::is_directory(where, failed))
      return "--tensorboard " + where.string()
             + " is not a folder: name another folder";
    if (faccessat(AT_FDCWD, where.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
      return "--tensorboard cannot write into the folder " + where.string() + " ("
             + std::error_code{errno, std::generic_category()}.message()
             + "): name another folder";
  }
  return {};
}

std::string output_files::prepare(const std::vector<run_request>& runs) {
  if (!output_.exported.empty() && runs.size() > 1)
    return "--export " + output_.exported + " takes one schedule, and this command has "
           + std::to_string(runs.size()) + ": give a single --schedule";
  auto files = planned(runs);
  const auto add_folder = [&](const char* option, const path& folder,
                              named_file::kind type = named_file::kind::folder) {
    if (!folder.empty())
      files.push_back({option, folder, type});
  };
  add_folder("--report", report_);
  add_folder("--checkpoint", options_.checkpoint.folder);
  add_folder("--tensorboard", output_.tensorboard, named_file::kind::shared_folder);
  for (const auto& request : runs)
    add_folder("--tensorboard", events_of(request), named_file::kind::shared_folder);
  if (auto error = written_twice(files, read_files(options_, runs.size()));
      !error.empty())
    return error;
  if (auto error = make_report(); !error.empty())
    return error;
  if (auto error = make_events(runs); !error.empty())
    return error;
  for (const auto& file : planned(runs))
    if (auto error = write_error(file); !error.empty())
      return error;
  if (output_.save.empty())
    return {};
  for (const auto& request : runs)
    if (auto error = foreign_config(weights_of(request, runs.size() == 1),
                                    request.plan.work->whole.options);
        !error.empty())
      return "--save: " + error;
  return {};
}

std::string output_files::note(const path& file, const std::string& error) {
  if (error.empty() && std::ranges::find(written_, file) == written_.end())
    written_.push_back(file);
  return error;
}

// The choices of a local rule are in the record alone.
std::string output_files::write_schedule(const run_request& request,
                                         const run_result& ran) {
  if (output_.exported.empty() || ran.outcome != ending::finished)
    return {};
  const auto& [sch, dims] = std::tie(request.plan.sch, request.plan.dims);
  std::vector<std::vector<action>> rows;
  for (const auto& row : ran.actions) {
    if (static_cast<int>(rows.size()) == request.plan.ranks_of_pipeline())
      break; // other data replicas have the same rows
    auto& to = rows.emplace_back();
    for (const auto& measured : row)
      if (!measured.part)
        to.push_back(measured.action);
  }
  return note(
    output_.exported,
    write_whole_file(output_.exported, sch.local_rule()
                                         ? troupe::write_schedule(sch, dims, rows)
                                         : troupe::write_schedule(sch, dims)));
}

std::string output_files::write_weights(const run_request& request,
                                        const run_result& result, bool only_run) {
  if (output_.save.empty() || result.parameters.empty())
    return {};
  const auto file = weights_of(request, only_run);
  return note(
    file,
    save_weights(file, request.plan.work->whole, readable(result.parameters),
                 metadata_of(options_, request.plan, result),
                 output_.save_precision == "bf16" ? precision::bf16 : precision::fp32));
}

std::int64_t output_files::actions_shown(const run_plan& plan) const {
  constexpr std::int64_t total = 1'000'000, least = 500;
  if (!report_.empty())
    return actions_in_trace;
  return output_.watch_port()
           ? std::clamp(total / plan.ranks(), least, actions_in_trace)
           : 0;
}

std::string output_files::write_trace(const run_account& run) {
  if (actions_shown(run.request->plan) > 0)
    timelines_.push_back(timeline_json(run));
  if (report_.empty())
    return {};
  const auto& actions = run.result.actions;
  const auto file = trace_of(*run.request);
  cuts_traces_ = cuts_traces_ || run.result.actions_cut;
  const auto title = run.request->text + ", times " + name_of(run.timing());
  return note(file,
              write_whole_file(file, trace_json(run.request->plan, actions, title)));
}

std::string output_files::write_results(const std::string& text) {
  std::string error;
  if (writes_json())
    error = note(output_.json, write_whole_file(output_.json, text));
  if (!report_.empty()) {
    const auto file = report_ / "results.json";
    const auto also = note(file, write_whole_file(file, text));
    error += (error.empty() || also.empty() ? "" : "; ") + also;
  }
  return error;
}

std::string output_files::end_results(const std::string& text) {
  if (output_.results_on_stdout())
    std::cout << text;
  return write_results(text);
}

path output_files::page_file() const {
  return report_.empty() ? path{} : report_ / "report.html";
}

std::string output_files::page(const std::string& results,
                               const std::string& table) const {
  return timelines_.empty() ? "" : report_page(results, table, timelines_);
}

std::string output_files::write_page(const std::string& results,
                                     const std::string& table) {
  if (report_.empty() || timelines_.empty())
    return {};
  return note(page_file(), write_whole_file(page_file(), page(results, table)));
}

std::string output_files::summary() const {
  std::string text;
  for (const auto& file : written_)
    text += "\n  " + file.string();
  if (!output_.tensorboard.empty())
    text += "\n  " + output_.tensorboard + " (tensorboard --logdir "
            + output_.tensorboard + ")";
  if (cuts_traces_)
    text += "\n(a trace holds the first " + std::to_string(actions_in_trace)
            + " actions of a rank)";
  return text.empty() ? "" : "written:" + text + "\n";
}

} // namespace troupe
