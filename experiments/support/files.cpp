#include "experiments/support/files.hpp"

#include "experiments/support/trace.hpp"
#include "models/weights.hpp"
#include "models/whole_file.hpp"

#include <algorithm>
#include <iostream>

namespace troupe {

namespace {

using std::filesystem::path;

/// A run as a part of a file's name.
std::string name_of(const run_request& request) {
  auto name = request.text;
  std::ranges::replace(name, '/', '_');
  return name;
}

/// What made the weights: one update of all stages, or the updates of each.
file_metadata metadata_of(const run_result& result) {
  std::string all;
  for (const auto updates : result.updates)
    all += (all.empty() ? "" : ",") + std::to_string(updates);
  const bool one = std::ranges::count(result.updates, result.updates.front())
                   == std::ssize(result.updates);
  return {one ? std::pair{"update", std::to_string(result.updates.front())}
              : std::pair{"updates", all},
          {"samples", std::to_string(result.updated_samples)}};
}

} // namespace

std::string output_files::refusal() const {
  std::error_code failed;
  if (!options_.report.empty())
    std::filesystem::create_directories(options_.report, failed);
  if (failed)
    return "cannot make the folder " + options_.report + ": " + failed.message();
  if (!options_.report.empty())
    if (auto wrong = refusal_to_write(path{options_.report} / "results.json");
        !wrong.empty())
      return wrong;
  if (!options_.save.empty())
    if (auto wrong = refusal_to_write(options_.save); !wrong.empty())
      return wrong;
  if (!options_.json.empty() && !options_.results_on_stdout())
    return refusal_to_write(options_.json);
  return {};
}

std::string output_files::note(const path& file, const std::string& wrong) {
  if (wrong.empty())
    written_.push_back(file);
  return wrong;
}

std::string output_files::write_weights(const run_request& request,
                                        const run_result& result, bool only_run) {
  if (options_.save.empty() || result.parameters.empty())
    return {};
  path file = options_.save;
  if (!only_run)
    file.replace_filename(file.stem().string() + "-" + name_of(request)
                          + file.extension().string());
  return note(file, save_weights(file, request.plan.work->whole,
                                 readable(result.parameters), metadata_of(result)));
}

std::string output_files::write_trace(const run_request& request,
                                      const run_result& result) {
  if (options_.report.empty())
    return {};
  const auto file = path{options_.report} / ("trace-" + name_of(request) + ".json");
  cuts_traces_ = cuts_traces_ || result.actions_cut;
  return note(file, write_whole_file(file, trace_json(request.plan, result.actions)));
}

std::string output_files::write_results(const std::string& text) {
  std::string wrong;
  if (options_.results_on_stdout())
    std::cout << text;
  else if (!options_.json.empty())
    wrong = note(options_.json, write_whole_file(options_.json, text));
  if (!options_.report.empty()) {
    const auto file = path{options_.report} / "results.json";
    wrong += note(file, write_whole_file(file, text));
  }
  return wrong;
}

std::string output_files::summary() const {
  std::string text;
  for (const auto& file : written_)
    text += "\n  " + file.string();
  if (cuts_traces_)
    text += "\n(a trace holds the first " + std::to_string(actions_in_trace)
            + " actions of a rank)";
  return text.empty() ? "" : "written:" + text + "\n";
}

} // namespace troupe
