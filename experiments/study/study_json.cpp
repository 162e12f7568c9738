// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/study/study_json.hpp"

#include "kernels/version.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace troupe {

namespace {

using json = nlohmann::json;

json number_json(std::optional<double> value) {
  return value && std::isfinite(*value) ? json(*value) : json(nullptr);
}

json spread_json(const std::optional<spread>& from) {
  if (!from)
    return nullptr;
  return {{"mean", number_json(from->mean)},
          {"deviation", number_json(from->deviation)},
          {"n", from->count}};
}

json options_json(const study_plan& plan, const std::vector<std::string>& values) {
  auto result = json::object();
  for (std::size_t i = 0; i < values.size(); ++i)
    result[plan.varied[i]] = values[i];
  return result;
}

/// At most `most` points of a curve, each the mean of as many neighbours.
json curve_json(const loss_curve& curve) {
  constexpr std::size_t most = 300;
  if (curve.loss.empty())
    return nullptr;
  const auto together = (curve.loss.size() + most - 1) / most;
  auto samples = json::array(), loss = json::array(), seconds = json::array();
  for (std::size_t i = 0; i < curve.loss.size(); i += together) {
    const auto end = std::min(i + together, curve.loss.size());
    const auto begin = i > 0 ? curve.samples[i - 1] : curve.samples_before;
    samples.push_back(curve.samples[end - 1]);
    loss.push_back(number_json(mean_loss(curve, end, curve.samples[end - 1] - begin)));
    if (!curve.seconds.empty())
      seconds.push_back(number_json(curve.seconds[end - 1]));
  }
  return {{"samples", samples},
          {"loss", loss},
          {"seconds", curve.seconds.empty() ? json(nullptr) : seconds}};
}

} // namespace

std::string study_json(const study_plan& plan, const std::vector<measured_run>& runs,
                       const std::vector<study_summary>& summaries) {
  const auto measures = study_measures();
  std::set<std::size_t> shown;
  std::set<std::string> seeds, timings;
  for (const auto& s : summaries)
    shown.insert(s.measure);
  for (const auto& run : plan.runs)
    seeds.insert(run.seed);
  for (const auto& run : runs)
    if (!run.timing.empty())
      timings.insert(run.timing);
  json result{{"troupe", version()},
              {"command", plan.command},
              {"program", plan.program},
              {"clock", timings.contains("virtual") ? "virtual" : "real"},
              {"timings", timings},
              {"seeds", has_seeds(plan) ? json(seeds.size()) : json(nullptr)},
              {"warning", busy_warning(runs)},
              {"files",
               {{"runs.csv", runs_csv(plan, runs)},
                {"summary.csv", summary_csv(plan, summaries)}}},
              {"varied", plan.varied},
              {"fixed", json::object()},
              {"reference", plan.runs.front().schedule},
              {"measures", json::array()},
              {"runs", json::array()},
              {"summary", json::array()}};
  for (const auto& [name, value] : plan.fixed)
    result["fixed"][name] = value;
  for (const auto m : shown)
    result["measures"].push_back({{"key", measures[m].key},
                                  {"name", measures[m].name},
                                  {"unit", measures[m].unit},
                                  {"better", measures[m].better}});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto values = json::object();
    for (const auto m : shown)
      values[measures[m].key] = number_json(runs[i].values[m]);
    result["runs"].push_back(
      {{"run", i + 1},
       {"schedule", plan.runs[i].schedule},
       {"options", options_json(plan, plan.runs[i].values)},
       {"seed", plan.runs[i].seed.empty() ? json(nullptr) : json(plan.runs[i].seed)},
       {"ending", runs[i].ending},
       {"error", runs[i].error.empty() ? json(nullptr) : json(runs[i].error)},
       {"measures", std::move(values)},
       {"curve",
        runs[i].ending == "finished" ? curve_json(runs[i].curve) : json(nullptr)}});
  }
  for (const auto& s : summaries) {
    auto entry = spread_json(s.over_seeds);
    entry["schedule"] = s.schedule;
    entry["options"] = options_json(plan, s.values);
    entry["measure"] = measures[s.measure].key;
    entry["difference"] = spread_json(s.difference);
    result["summary"].push_back(std::move(entry));
  }
  return json_text(result);
}

} // namespace troupe
