// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/study/study_folder.hpp"

#include "experiments/options/output_places.hpp"
#include "experiments/options/parse_mistake.hpp"
#include "experiments/options/parsing.hpp"
#include "kernels/version.hpp"
#include "models/input_file.hpp"
#include "models/utf8.hpp"
#include "models/whole_file.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

using json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* plan_file = "study.json";

std::optional<json> json_in(const fs::path& file) {
  const auto opened = input_file::open(file, "the study's file");
  if (!opened)
    return {};
  try {
    constexpr int most_depth = 32;
    return shallow_json(opened->content(), most_depth);
  } catch (const std::exception&) {
    return {};
  }
}

std::string text_in(const json& from, const char* key) {
  const auto entry = from.find(key);
  return entry != from.end() && entry->is_string() ? entry->get<std::string>() : "";
}

} // namespace

study_folder::study_folder(fs::path path, study_plan plan)
  : path_(std::move(path)), plan_(std::move(plan)) {
  // nop
}

/// Returns one sentence if another program writes into the folder, else an empty text.
std::string study_folder::lock() {
  return lock_->try_lock(path_) ? ""
                                : "another program is writing into the folder "
                                    + path_.string() + ": name another folder";
}

tl::expected<study_folder, std::string> study_folder::make(const fs::path& folder,
                                                           const study_plan& plan) {
  std::error_code failed;
  auto path = folder;
  if (folder.empty())
    path = make_dated_folder("runs/study", failed);
  else
    fs::create_directories(folder, failed);
  if (!failed)
    fs::create_directory(path / "runs", failed);
  if (failed)
    return problem{"--report cannot make the folder " + path.string() + " ("
                   + failed.message() + "): name another folder"};
  study_folder result{path, plan};
  if (auto error = result.lock(); !error.empty())
    return problem{"--report: " + error};
  for (const char* name : {"runs.csv", "summary.csv", "study.html"})
    if (fs::exists(fs::symlink_status(path / name, failed))
        && !fs::exists(path / plan_file, failed))
      return problem{"--report " + path.string() + " has a file " + name
                     + " that is of no study: name another folder"};
  if (!fs::is_empty(path / "runs", failed) && !fs::exists(path / plan_file, failed))
    return problem{"--report " + path.string()
                   + " has a folder runs with files of no study: name another folder"};
  if (fs::exists(path / plan_file, failed))
    return problem{"--report " + path.string() + " has a study: say --continue "
                   + path.string()
                   + " to go on with that study, or name another folder"};
  const json facts{{"troupe", version()},
                   {"started_in", utf8(fs::current_path(failed).string())},
                   {"plan", json::parse(to_text(plan))}};
  if (auto error = result.write(plan_file, json_text(facts, 1) + "\n"); !error.empty())
    return problem{error};
  return result;
}

tl::expected<study_folder, std::string> study_folder::open(const fs::path& folder) {
  const auto named = "--continue " + folder.string();
  const auto facts = json_in(folder / plan_file);
  if (!facts || !facts->is_object() || !facts->contains("plan"))
    return problem{named + " is no folder of a study: name a folder with a " + plan_file
                   + " that study has written"};
  if (const auto written_by = text_in(*facts, "troupe"); written_by != version())
    return problem{named + " is a study of troupe " + printable(written_by)
                   + ", and this is troupe " + version()
                   + ": begin a new study, as results of both do not compare"};
  std::error_code unknown;
  if (const auto begun = text_in(*facts, "started_in");
      begun != utf8(fs::current_path(unknown).string()))
    return problem{named + " was begun in " + printable(begun)
                   + ": continue there, as its options may name files from there"};
  try {
    study_folder result{folder, study_from(facts->at("plan").dump())};
    if (auto error = result.lock(); !error.empty())
      return problem{"--continue: " + error};
    fs::create_directory(folder / "runs", unknown);
    for (const auto& within : {folder, folder / "runs"})
      for (const auto& entry : fs::directory_iterator{within, unknown})
        if (entry.is_symlink(unknown))
          return problem{named + " has a link, " + printable(entry.path().string())
                         + ", and a study writes none: remove the link"};
    return result;
  } catch (const std::exception&) {
    return problem{named + " has a damaged " + std::string{plan_file}
                   + ": begin a new study"};
  }
}

fs::path study_folder::file_of(std::size_t run) const {
  char name[32];
  std::snprintf(name, sizeof name, "%05zu.json", run + 1);
  return path_ / "runs" / name;
}

std::optional<study_result> study_folder::kept(std::size_t run) const {
  const auto kept = json_in(file_of(run));
  if (!kept || !kept->is_object() || !kept->contains("words")
      || kept->at("words") != json(plan_.runs[run].words))
    return {};
  study_result result{text_in(*kept, "ending"), text_in(*kept, "error"), ""};
  if (const auto results = kept->find("results");
      results != kept->end() && results->is_object())
    result.results = results->dump();
  return result.is_final() ? std::optional{result} : std::nullopt;
}

std::string study_folder::keep(std::size_t run, const study_result& result) const {
  auto results = json::parse(result.results, nullptr, false);
  const json kept{{"words", plan_.runs[run].words},
                  {"ending", result.ending},
                  {"error", result.error},
                  {"results", results.is_discarded() ? json(nullptr) : results}};
  return write_whole_file(file_of(run), json_text(kept, 1) + "\n");
}

std::string study_folder::write(const std::string& name,
                                const std::string& text) const {
  return write_whole_file(path_ / name, text);
}

} // namespace troupe
