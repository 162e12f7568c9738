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

std::string refusal(const output_options& o) {
  if (o.save_precision != "fp32" && o.save_precision != "bf16")
    return "--save-precision " + o.save_precision
           + ": weights are saved as fp32 or bf16";
  constexpr int most = 65535;
  const bool watched = !o.watch.empty() && o.watch != "false" && o.watch != "true";
  if (const auto port = o.watch_port(); watched && (!port || *port < 0 || *port > most))
    return "--watch " + o.watch
           + ": a port is a whole number from 1 to 65535; leave it out, or say 0, for "
             "any that is free";
  return {};
}

void add_output(option_list& to, output_options& place, const output_kinds& has) {
  to.begin_group("Output");
  if (has.weights) {
    to.add_option("--save", place.save,
                  "Safetensors file for the weights at the end. A gpt's "
                  "model.safetensors gets a config.json beside it, for Hugging Face.");
    to.add_option("--save-precision", place.save_precision,
                  "Of the weights in that file: fp32, or bf16, to which they are "
                  "rounded. Option --init reads either.");
  }
  if (has.results)
    to.add_option("--json", place.json,
                  "File for the results. Name -: standard output.");
  if (has.report)
    to.add_option("--report", place.report,
                  std::string{has.timeline
                                ? "Folder for report.html, results.json and traces."
                                : "Folder for results.json and traces."}
                    + (place.new_report.empty()
                         ? ""
                         : " Without a name: a new one in runs; none with --quiet "
                           "--json -."));
  if (has.weights)
    to.add_option("--tensorboard", place.tensorboard,
                  "Folder for what TensorBoard shows while runs go on: a folder in it "
                  "for each schedule, beside those of earlier runs.");
  if (has.report)
    to.add_switch(
      "--watch", place.watch, "[PORT]",
      "Page for a browser on this machine that shows runs while they go on. "
      "Its address is said on standard error. Without a port: any that is "
      "free.");
  to.add_flag("--quiet", place.quiet,
              has.results ? "Silence but for errors and the results of --json -."
                          : "Silence but for errors.");
  if (has.timeline)
    to.add_flag("--print", place.print, "Timelines as text, a row for each rank.");
  if (has.timeline)
    to.add_option("--export", place.exported,
                  "File for the schedule: a row of actions for each rank, which "
                  "file:PATH reads. PyTorch's pipelining reads schedules that flush "
                  "and have each stage on one rank.");
  if (has.catalog)
    to.add_flag("--all", place.all,
                "Catalog of tiny models under every schedule, in both clocks.");
}

} // namespace troupe
