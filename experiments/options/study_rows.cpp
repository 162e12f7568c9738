// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/options/study_options.hpp"

#include <algorithm>
#include <set>

namespace troupe {

tl::expected<varied_option, std::string> parse_varied(const std::string& text) {
  const auto equals = text.find('=');
  const problem shape{"--vary " + text
                      + ": write OPTION=VALUE,VALUE, for example microbatches=4,8"};
  if (equals == std::string::npos || equals == 0)
    return shape;
  varied_option result{text.substr(0, equals), {}};
  if (result.name.starts_with("--"))
    result.name.erase(0, 2);
  const auto values = text.substr(equals + 1);
  const bool has_semicolons = values.find(';') != std::string::npos;
  result.values = split(values, has_semicolons ? ';' : ',');
  if (has_semicolons && result.values.back().empty())
    result.values.pop_back(); // a single value with commas: "cost=F=1,B=2;"
  if (!has_semicolons && result.values.size() > 1
      && std::ranges::any_of(result.values, [](const std::string& value) {
           return value.find('=') != std::string::npos;
         }))
    return problem{"--vary " + text
                   + " has values with '=', which may have commas: separate the values "
                     "by semicolons, for example mesh=data=2,pipe=2;pipe=4, and end a "
                     "single one with a semicolon"};
  if (result.values.empty()
      || std::ranges::find(result.values, "") != result.values.end())
    return shape;
  if (std::set<std::string>(result.values.begin(), result.values.end()).size()
      < result.values.size())
    return problem{"--vary " + text + " has a value twice: give each value once"};
  return result;
}

std::string validation_error(const typed_study& study) {
  constexpr int most_seeds = 10'000, most_jobs = 1024;
  for (const auto& [option, value, most] :
       {std::tuple{"--seeds ", study.seeds, most_seeds},
        {"--jobs ", study.jobs, most_jobs}})
    if (value < 1 || value > most)
      return option + std::to_string(value) + " is out of range: give 1 to "
             + std::to_string(most);
  return {};
}

option_rows study_rows() {
  constexpr auto group = &typed_options::study;
  using typed = typed_study;
  const auto studies = [](const program_info& p) { return p.studies; };
  return under(
    "Study", studies,
    {row<group, &typed::varied>(
       "--vary",
       "OPTION=VALUE,VALUE,.. runs every schedule with each value of an option, for "
       "example microbatches=4,8,16. Given several times: every combination runs. "
       "Semicolons separate values that contain commas: mesh=data=2,pipe=2;pipe=4."),
     row<group, &typed::seeds>(
       "--seeds",
       "Runs of each combination, with the seeds from --seed on. Losses of equal seeds "
       "are compared in pairs.",
       {.has = [](const program_info& p) { return p.studies && p.trains; }}),
     row<group, &typed::jobs>(
       "--jobs", "Runs at a time. More than 1 needs virtual time, as runs in real time "
                 "would take processors from each other."),
     row<group, &typed::continued>(
       "--continue",
       "Folder of a study that was cut short. Runs that ended are kept, and the "
       "other options come from the folder.")});
}

} // namespace troupe
