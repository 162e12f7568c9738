// study_samples FOLDER: writes pages of made studies, for the checks of study_checks.js
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/report/study_page.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

using json = nlohmann::ordered_json;
using combination = std::map<std::string, std::string>;

namespace {

struct sample_study {
  std::vector<std::pair<std::string, std::vector<std::string>>> varied;
  std::vector<std::string> schedules;
  int seeds = 1;
};

json mean_of(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double x : values)
    mean += x / static_cast<double>(values.size());
  for (const double x : values)
    squares += (x - mean) * (x - mean);
  const auto free = static_cast<double>(values.size()) - 1;
  return {{"mean", mean},
          {"deviation", free > 0 ? json(std::sqrt(squares / free)) : json()},
          {"n", values.size()}};
}

std::vector<combination> combinations_of(const sample_study& study) {
  std::vector<combination> result{{}};
  for (const auto& [option, values] : study.varied) {
    std::vector<combination> longer;
    for (const auto& begun : result)
      for (const auto& value : values) {
        longer.push_back(begun);
        longer.back()[option] = value;
      }
    result = std::move(longer);
  }
  return result;
}

const json measures = {
  {{"key", "bubble"}, {"name", "bubble"}, {"unit", ""}, {"better", "less"}},
  {{"key", "peak_bytes_max"},
   {"name", "memory of the fullest rank"},
   {"unit", "bytes"},
   {"better", "less"}},
  {{"key", "samples_per_second"},
   {"name", "samples per second"},
   {"unit", "1/s"},
   {"better", "more"}},
  {{"key", "makespan"}, {"name", "makespan"}, {"unit", "s"}, {"better", "less"}},
  {{"key", "evaluation_loss"},
   {"name", "evaluated loss"},
   {"unit", "nats"},
   {"better", "less"}}};

class writer {
public:
  explicit writer(const sample_study& study) : study_{study} {}

  json whole() {
    auto options = json::array();
    for (const auto& each : study_.varied)
      options.push_back(each.first);
    for (const auto& options_of_run : combinations_of(study_))
      for (std::size_t s = 0; s < study_.schedules.size(); ++s)
        run_all(options_of_run, static_cast<int>(s));
    return {
      {"troupe", "0.1.0"},
      {"command", {"study", "</script><!--", "--seeds", "3"}},
      {"program", "compare"},
      {"clock", "virtual"},
      {"timings", {"virtual"}},
      {"seeds", study_.seeds},
      {"warning", study_.varied.empty() ? "warning: a busy machine" : ""},
      {"files", {{"runs.csv", "run\n\"</script>\"\n"}, {"summary.csv", "measure\n"}}},
      {"varied", options},
      {"reference", study_.schedules.front()},
      {"measures", measures},
      {"runs", runs_},
      {"summary", summary_}};
  }

private:
  static int number_of(const combination& options, const std::string& name) {
    const auto found = options.find(name);
    return found == options.end() ? 8 : std::stoi(found->second);
  }

  double noise() { return std::normal_distribution<double>{0, 1}(random_); }

  json run_of(const combination& options, int schedule) {
    const double m = number_of(options, "microbatches"), p = 4;
    const double bubble = (p - 1 - schedule) / (m + p - 1) + 0.004 + 0.002 * noise();
    const double rate = 100 * (1 - bubble);
    auto samples = json::array(), loss = json::array(), seconds = json::array();
    for (int i = 1; i <= 12; ++i) {
      samples.push_back(16 * i);
      loss.push_back(1.5 + 0.1 * schedule + std::exp(-i / 4.0) + 0.03 * noise());
      seconds.push_back(16 * i / rate);
    }
    json run{{"ending", "finished"}, {"error", nullptr}};
    run["measures"] = {{"bubble", bubble},
                       {"peak_bytes_max", 3'000'000 + 500'000 * m / (schedule + 1)},
                       {"samples_per_second", rate},
                       {"makespan", 192 / rate},
                       {"evaluation_loss", loss.back()}};
    run["curve"] = {{"samples", samples}, {"loss", loss}, {"seconds", seconds}};
    return run;
  }

  void run_all(const combination& options, int schedule) {
    const auto& name = study_.schedules[static_cast<std::size_t>(schedule)];
    std::map<std::string, std::map<int, double>> values;
    for (int seed = 1; seed <= study_.seeds; ++seed) {
      json run{{"run", runs_.size() + 1},
               {"schedule", name},
               {"options", options},
               {"seed", seed}};
      if (name == "chimera" && number_of(options, "microbatches") % 4 != 0)
        run.update({{"ending", "refused"},
                    {"error", "chimera needs microbatches in <b>fours</b>"},
                    {"measures", json::object()},
                    {"curve", nullptr}});
      else if (name == "1f1b" && seed == 2 && number_of(options, "microbatches") == 8)
        run.update({{"ending", "failed"},
                    {"error", "the loss is not finite"},
                    {"measures", json::object()},
                    {"curve", nullptr}});
      else
        run.update(run_of(options, schedule));
      for (const auto& [key, value] : run["measures"].items())
        values[key][seed] = value;
      runs_.push_back(run);
    }
    if (schedule == 0)
      references_ = values;
    for (const auto& [key, by_seed] : values) {
      std::vector<double> all, differences;
      for (const auto& [seed, value] : by_seed) {
        all.push_back(value);
        if (references_[key].contains(seed))
          differences.push_back(value - references_[key][seed]);
      }
      json row{{"schedule", name}, {"options", options}, {"measure", key}};
      row.update(mean_of(all));
      row["difference"] = differences.empty() ? json() : mean_of(differences);
      summary_.push_back(row);
    }
  }

  const sample_study& study_;
  std::mt19937 random_{7};
  json runs_ = json::array(), summary_ = json::array();
  std::map<std::string, std::map<int, double>> references_;
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 2)
    return 2;
  const std::vector<std::string> schedules{"gpipe", "1f1b", "chimera"};
  const std::map<std::string, sample_study> studies{
    {"two",
     {.varied = {{"microbatches", {"4", "6", "8", "16", "32", "64"}},
                 {"stages", {"2", "4"}}},
      .schedules = schedules,
      .seeds = 3}},
    {"none", {.varied = {}, .schedules = schedules, .seeds = 3}},
    {"texts",
     {.varied = {{"model", {"gpt", "</script><img src=x>", "mlp"}},
                 {"a,\"b\"", {"<i>1</i>", "2"}},
                 {"microbatches", {"4", "16"}}},
      .schedules = {"gpipe", "x:</script><img src=x onerror=alert(1)>"},
      .seeds = 1}}};
  for (const auto& [name, study] : studies) {
    std::ofstream file{std::filesystem::path{argv[1]} / (name + ".html")};
    file << troupe::study_page(writer{study}.whole().dump());
    if (!file.flush())
      return 1;
  }
  return 0;
}
