// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/output_options.hpp"

#include "experiments/options/option_list.hpp"
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

void add_output(option_list& to, output_options& typed, const output_kinds& has) {
  to.begin_group("Output");
  if (has.weights) {
    to.add_option(
      "--save", typed.save,
      "Safetensors file for the weights at the end. If a gpt's weights are saved as "
      "model.safetensors, a config.json for Hugging Face is written too.");
    to.add_option("--save-precision", typed.save_precision,
                  "Type of the weights that --save writes: fp32, or bf16, which rounds "
                  "weights. --init reads both types.");
  }
  if (has.report)
    to.add_option("--report", typed.report,
                  std::string{"Folder for report.html, results.json and traces."}
                    + (typed.new_report.empty()
                         ? ""
                         : " Default: a new folder in runs, but no report with "
                           "--quiet --json -."));
  if (has.results)
    to.add_option("--json", typed.json,
                  "File for the results. Value -: standard output.");
  if (has.weights)
    to.add_option("--tensorboard", typed.tensorboard,
                  "Folder for TensorBoard's files, written during the run. Each "
                  "schedule has a subfolder. Subfolders of earlier runs stay.");
  if (has.report)
    to.add_switch(
      "--watch", typed.watch, "[PORT]",
      "Web page on this machine that shows the run while it lasts. The page's address "
      "is printed on standard error. Value 0, or no port: any free port.");
  to.add_flag("--quiet", typed.quiet,
              has.results ? "Prints nothing but errors and the results of --json -."
                          : "Prints nothing but errors.");
  if (has.timeline)
    to.add_flag("--print", typed.print,
                "Prints a timeline of actions, a row for each rank.");
  if (has.timeline)
    to.add_option("--export", typed.exported,
                  "File for the schedule: a row of actions for each rank. --schedule "
                  "file:PATH reads the file. PyTorch's pipelining reads the file if "
                  "the schedule flushes and has each stage on one rank.");
  if (has.catalog)
    to.add_flag("--all", typed.whole_catalog,
                "Proves every schedule on tiny models, in real and in virtual time.");
}

} // namespace troupe
