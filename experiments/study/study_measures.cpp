// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/study/study_measures.hpp"

#include "experiments/report/other_programs.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace troupe {

namespace {

using json = nlohmann::json;

std::optional<double> number_at(const json& from, const char* pointer) {
  const json::json_pointer at{pointer};
  if (!from.contains(at) || !from.at(at).is_number())
    return {};
  return from.at(at).get<double>();
}

/// The numbers of a list; empty if there is no such list.
std::vector<double> numbers_at(const json& from, const char* pointer) {
  std::vector<double> result;
  const json::json_pointer at{pointer};
  if (from.contains(at) && from.at(at).is_array())
    for (const auto& value : from.at(at))
      result.push_back(value.is_number() ? value.get<double>()
                                         : std::numeric_limits<double>::quiet_NaN());
  return result;
}

std::optional<double> largest_at(const json& from, const char* pointer) {
  const auto values = numbers_at(from, pointer);
  return values.empty() ? std::nullopt
                        : std::optional{*std::ranges::max_element(values)};
}

/// The largest number of stage-microbatches of a rank, as microbatches of all stages
/// of a rank: comparable between schedules with different numbers of stages on a rank.
std::optional<double> held_at(const json& from, const char* pointer) {
  const auto most = largest_at(from, pointer), stages = number_at(from, "/stages"),
             ranks = number_at(from, "/pipeline_ranks");
  return most && ranks && stages ? std::optional{*most * *ranks / *stages}
                                 : std::nullopt;
}

std::optional<double> mean_at(const json& from, const char* pointer) {
  const auto values = numbers_at(from, pointer);
  double sum = 0;
  for (const double value : values)
    sum += value;
  return values.empty() ? std::nullopt
                        : std::optional{sum / static_cast<double>(values.size())};
}

using reader = std::optional<double> (*)(const json& from, const char* pointer);

/// A measure, and where results.json has the measure within a run.
struct measure_source {
  study_measure measure;
  reader read;
  const char* pointer;
};

constexpr const char* after_shortest = "loss_after_shortest_nats";

constexpr std::array sources{
  measure_source{{"bubble", "bubble", "", "less"}, number_at, "/bubble"},
  measure_source{{"makespan_seconds", "makespan", "s", "less"}, number_at, "/makespan"},
  measure_source{
    {"idle_seconds", "idle time of a rank", "s", "less"}, mean_at, "/idle"},
  measure_source{{"other_programs_share", "time that other programs took", "", "less"},
                 number_at,
                 "/other_programs/share"},
  measure_source{{"wall_seconds", "wall time", "s", "less"}, number_at, "/seconds"},
  measure_source{{"samples_per_second", "samples a second", "1/s", "more"},
                 number_at,
                 "/samples_per_second"},
  measure_source{{"tokens_per_second", "tokens a second", "1/s", "more"},
                 number_at,
                 "/tokens_per_second"},
  measure_source{
    {"peak_microbatches", "activations of the fullest rank", "microbatches", "less"},
    held_at,
    "/peak_activations"},
  measure_source{{"peak_bytes", "memory of the fullest rank", "bytes", "less"},
                 largest_at,
                 "/peak_bytes"},
  measure_source{
    {"weight_versions", "weight versions of the stage with most", "versions", "less"},
    largest_at,
    "/weight_versions"},
  measure_source{
    {"staleness_max", "staleness of the stalest gradient", "versions", "less"},
    largest_at,
    "/staleness/max"},
  measure_source{
    {"staleness_mean", "mean staleness of the stalest stage", "versions", "less"},
    largest_at,
    "/staleness/mean"},
  measure_source{{"pipeline_bytes", "bytes between stages", "bytes", "less"},
                 number_at,
                 "/bytes_moved/pipeline"},
  measure_source{{"gradient_bytes", "bytes of gradients", "bytes", "less"},
                 number_at,
                 "/bytes_moved/gradients"},
  measure_source{{"parameter_bytes", "bytes of parameters", "bytes", "less"},
                 number_at,
                 "/bytes_moved/parameters"},
  measure_source{{"tensor_bytes", "bytes between tensor shards", "bytes", "less"},
                 number_at,
                 "/bytes_moved/tensor"},
  measure_source{{"expert_bytes", "bytes to and from experts", "bytes", "less"},
                 number_at,
                 "/bytes_moved/experts"},
  measure_source{{"tied_bytes", "bytes of tied gradients", "bytes", "less"},
                 number_at,
                 "/bytes_moved/tied"},
  measure_source{{"loss_nats", "training loss", "nats", "less"}, nullptr, ""},
  measure_source{{"evaluation_loss_nats", "evaluated loss", "nats", "less"},
                 number_at,
                 "/evaluation/loss"},
  measure_source{
    {"evaluation_accuracy", "accuracy", "", "more"}, number_at, "/evaluation/accuracy"},
  measure_source{{"target_samples", "samples to the target loss", "samples", "less"},
                 number_at,
                 "/target/samples"},
  measure_source{{"target_seconds", "seconds to the target loss", "s", "less"},
                 number_at,
                 "/target/seconds"},
  measure_source{
    {after_shortest, "loss after the shortest time", "nats", "less"}, nullptr, ""},
};

std::size_t index_of(std::string_view key) {
  return static_cast<std::size_t>(
    std::ranges::find_if(sources, [&](const auto& s) { return s.measure.key == key; })
    - sources.begin());
}

loss_curve curve_of(const json& run) {
  loss_curve result;
  result.loss = numbers_at(run, "/loss");
  for (const double samples : numbers_at(run, "/loss_samples"))
    result.samples.push_back(static_cast<std::int64_t>(samples));
  result.seconds = numbers_at(run, "/loss_seconds");
  if (result.samples.size() != result.loss.size())
    return {};
  if (result.seconds.size() != result.loss.size())
    result.seconds.clear();
  return result;
}

} // namespace

std::span<const study_measure> study_measures() {
  static const auto measures = [] {
    std::array<study_measure, sources.size()> result{};
    std::ranges::transform(sources, result.begin(), &measure_source::measure);
    return result;
  }();
  return measures;
}

measured_run measure(const std::string& results) {
  measured_run result;
  result.values.resize(sources.size());
  const auto all = json::parse(results, nullptr, false);
  const json::json_pointer first{"/runs/0"};
  if (!all.is_object() || !all.contains(first))
    return result;
  const auto& run = all.at(first);
  if (const auto timing = run.find("timing");
      timing != run.end() && timing->is_string())
    result.timing = timing->get<std::string>();
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i].read != nullptr)
      result.values[i] = sources[i].read(run, sources[i].pointer);
  // Times of ranks that took turns on fewer threads are not the schedule's.
  if (result.timing == "shared")
    for (const char* key :
         {"bubble", "makespan_seconds", "idle_seconds", "target_seconds"})
      result.values[index_of(key)] = {};
  result.curve = curve_of(run);
  if (result.timing == "shared")
    result.curve.seconds.clear();
  const auto batch =
    static_cast<std::int64_t>(number_at(all, "/data/batch").value_or(0));
  result.curve.samples_before =
    batch * static_cast<std::int64_t>(number_at(run, "/steps_before").value_or(0));
  result.window = samples_of_target(batch);
  result.values[index_of("loss_nats")] =
    mean_loss(result.curve, result.curve.loss.size(), batch);
  return result;
}

std::string busy_warning(const std::vector<measured_run>& runs) {
  const auto share = index_of("other_programs_share");
  const auto busy = std::ranges::count_if(runs, [&](const measured_run& run) {
    return run.values[share].value_or(0) > usual_share;
  });
  return busy == 0 ? ""
                   : "warning: other programs took more than 10% of the time of "
                       + std::to_string(busy) + (busy == 1 ? " run" : " runs")
                       + ": their seconds are longer, and their rates lower, than on "
                         "an idle machine";
}

void compare_in_time(std::span<measured_run*> runs) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const auto* run : runs)
    if (run->ending == "finished")
      shortest = std::min(shortest, end_of(run->curve).value_or(shortest));
  for (auto* run : runs)
    if (run->ending == "finished")
      run->values[index_of(after_shortest)] =
        loss_after(run->curve, shortest, run->window);
}

} // namespace troupe
