// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/option_row.hpp"
#include "experiments/options/output_options.hpp"
#include "experiments/options/parsing.hpp"

namespace troupe {

std::optional<int> output_options::watch_port() const {
  if (watch.empty() || watch == "false")
    return {};
  return watch == "true" ? 0 : whole_number<int>(watch);
}

std::string output_options::typed() const {
  std::string line;
  for (const auto& word : command)
    line += (line.empty() ? "" : " ") + word;
  return line;
}

std::string validation_error(const output_options& o) {
  if (o.save_precision != "fp32" && o.save_precision != "bf16")
    return "--save-precision " + o.save_precision + ": write fp32 or bf16";
  constexpr int most = 65535;
  const bool watched = !o.watch.empty() && o.watch != "false" && o.watch != "true";
  if (const auto port = o.watch_port(); watched && (!port || *port < 0 || *port > most))
    return "--watch " + o.watch
           + ": give a port from 1 to 65535, or 0 for any free port";
  return {};
}

option_rows output_rows() {
  constexpr auto group = &typed_options::output;
  using typed = output_options;
  const auto has_weights = [](const program_info& p) {
    return p.trains && p.keeps && !p.studies;
  };
  const auto keeps = [](const program_info& p) { return p.keeps && !p.studies; };
  const auto has_results = [](const program_info& p) {
    return (p.keeps || p.measures || p.exchanges || p.tells) && !p.studies;
  };
  const auto draws = [](const program_info& p) { return p.draws; };
  const std::string report = "Folder for report.html, results.json and traces.";
  return under(
    "Output", programs::all,
    {row<group, &typed::save>(
       "--save",
       "Safetensors file for the weights at the end. If a gpt's weights are saved as "
       "model.safetensors, a config.json for Hugging Face is written too.",
       {.has = has_weights}),
     row<group, &typed::save_precision>(
       "--save-precision",
       "Type of the weights that --save writes: fp32, or bf16, which rounds weights. "
       "--init reads both types.",
       {.has = has_weights,
        .effect = {[](run_view r) { return !r.o.output.save.empty(); },
                   "is the type of the weights that --save writes: say --save too, or "
                   "leave % out"}}),
     row<group, &typed::report>("--report", report,
                                {.has =
                                   [](const program_info& p) {
                                     return p.keeps && !p.studies
                                            && p.defaults.output.new_report.empty();
                                   }}),
     row<group, &typed::report>(
       "--report",
       report + " Default: a new folder in runs, but no report with --quiet --json -.",
       {.has =
          [](const program_info& p) {
            return p.keeps && !p.studies && !p.defaults.output.new_report.empty();
          }}),
     row<group, &typed::report>(
       "--report",
       "Folder for study.html, runs.csv, summary.csv and the results of each run. "
       "Default: a new folder in runs.",
       {.has = [](const program_info& p) { return p.studies; }}),
     row<group, &typed::json>("--json",
                              "File for the results. Value -: standard output.",
                              {.has = has_results}),
     row<group, &typed::tensorboard>(
       "--tensorboard",
       "Folder for TensorBoard's files, written during the run. Each schedule has a "
       "subfolder. Subfolders of earlier runs stay.",
       {.has = has_weights}),
     row<group, &typed::watch>(
       "--watch",
       "Web page on this machine that shows the run while it lasts. The page's address "
       "is printed on standard error. Value 0, or no port: any free port.",
       {.has = keeps, .optional_value = "[PORT]"}),
     row<group, &typed::quiet>("--quiet",
                               "Prints nothing but errors and the results of --json -.",
                               {.has = has_results}),
     row<group, &typed::quiet>("--quiet", "Prints nothing but errors.",
                               {.has =
                                  [](const program_info& p) {
                                    return p.studies
                                           || !(p.keeps || p.measures || p.exchanges
                                                || p.tells);
                                  }}),
     row<group, &typed::print>("--print",
                               "Prints a timeline of actions, a row for each rank.",
                               {.has = draws,
                                .effect = {[](run_view r) { return !r.o.output.quiet; },
                                           "prints timelines, and --quiet prints "
                                           "nothing: leave --print or --quiet out"}}),
     row<group, &typed::exported>(
       "--export",
       "File for the schedule: a row of actions for each rank. --schedule file:PATH "
       "reads the file. PyTorch's pipelining reads the file if the schedule flushes "
       "and has each stage on one rank.",
       {.has = draws}),
     row<group, &typed::whole_catalog>(
       "--all", "Proves every schedule on tiny models, in real and in virtual time.",
       {.has = [](const program_info& p) { return p.has_all; }})});
}

} // namespace troupe
