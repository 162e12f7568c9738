// bench: measures this machine: ceilings, kernels, training and the cost of actors
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/benchmarks/benchmarks.hpp"
#include "experiments/report/files.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/program.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <mutex>
#include <vector>

using namespace troupe;

namespace {

void print(std::FILE* out, const measurement& m) {
  std::fprintf(out, "%-42s %12.*f %-9s", m.name.c_str(), m.value < 1000 ? 2 : 0,
               m.value, m.unit.c_str());
  if (m.fraction)
    std::fprintf(out, " %5.2f of %s", *m.fraction, m.fraction_of.c_str());
  std::fprintf(out, "\n");
  std::fflush(out);
}

nlohmann::ordered_json to_json(const measurement& m) {
  nlohmann::ordered_json result{
    {"part", m.part}, {"name", m.name}, {"value", m.value}, {"unit", m.unit}};
  result["fraction"] = m.fraction ? nlohmann::ordered_json(*m.fraction) : nullptr;
  result["fraction_of"] = m.fraction ? nlohmann::ordered_json(m.fraction_of) : nullptr;
  return result;
}

/// Thrown when the user has ended the program.
struct interrupted {};

/// A source of the same initial values that draws each layer once. Drawing a large
/// network takes longer than a step on a GPU, and bench performs many runs.
weight_source drawn_once(const training& work) {
  struct drawn {
    std::once_flag once;
    std::vector<float> values;
  };
  return [draw = work.weights, layers = work.whole.layers,
          drawn_layers = std::make_shared<std::vector<drawn>>(
            work.whole.layers.size())](std::size_t layer, float* bucket) {
    auto& drawn_layer = (*drawn_layers)[layer];
    std::call_once(drawn_layer.once, [&] {
      drawn_layer.values.resize(static_cast<std::size_t>(layers[layer]->bucket()));
      draw(layer, drawn_layer.values.data());
    });
    std::ranges::copy(drawn_layer.values, bucket);
  };
}

int bench(options o) {
  o.run.lists_processors = false; // bench makes pipelines of 1, 2 and 4 ranks
  const auto shared = set_up(o);
  if (!shared) {
    std::cerr << "bench: " << shared.error() << '\n';
    return 2;
  }
  output_files files{o};
  if (const auto error = files.prepare(); !error.empty()) {
    std::cerr << "bench: " << error << '\n';
    return 2;
  }
  if (const auto slow = warning_of(o.run); !slow.empty())
    std::cerr << "bench: " << slow << '\n';
  if (const auto& first = shared->runs.front().plan;
      first.machine.mixes_processors(first.ranks())) {
    std::cerr
      << "bench: --device names the CPU and GPUs: name only cpu, or only GPUs\n";
    return 2;
  }
  (void)interruption(); // installs the handlers
  std::FILE* const out = o.output.results_on_stdout() ? stderr : stdout;
  auto measurements = nlohmann::ordered_json::array();
  std::string part;
  auto plan = shared->runs.front().plan;
  plan.work->weights = drawn_once(*plan.work);
  const benchmark b{o, plan, shared->model, [&](const measurement& m) {
                      const bool prints = !o.output.quiet && o.comparison.rows.empty();
                      if (prints && part != m.part)
                        std::fprintf(out, "%s%s\n", part.empty() ? "" : "\n",
                                     m.part.c_str());
                      part = m.part;
                      if (prints)
                        print(out, m);
                      measurements.push_back(to_json(m));
                      if (interruption())
                        throw interrupted{};
                    }};
  const auto measure = [&](const char* name, void (*function)(const benchmark&)) {
    if (std::ranges::find(o.parts, name) != o.parts.end())
      function(b);
  };
  int exit_code = 0;
  nlohmann::ordered_json comparison = nullptr;
  try {
    if (!o.comparison.rows.empty()) {
      auto measured = measure_pytorch_comparison(b, o.output.quiet ? nullptr : out);
      if (!measured) {
        std::cerr << "bench: " << measured.error() << '\n';
        return 2;
      }
      comparison = std::move(*measured);
      exit_code = interruption() ? ended_by_user : measurements.empty() ? 1 : 0;
    } else if (!o.run.choose.empty()) {
      const auto chosen = write_choices(b);
      if (!chosen) {
        std::cerr << "bench: " << chosen.error() << '\n';
        return 2;
      }
      if (*chosen == 0)
        std::cerr << "bench: --choose added no row, as no product of this GPU offers "
                     "algorithms to choose from\n";
    } else if (b.plan.machine.processor_of(0).is_gpu()) {
      measure("ceilings", measure_gpu);
      measure("training", measure_training);
      measure("actions", measure_actions);
      measure("checks", check_gpu_runs);
      measure("schedules", measure_schedules);
    } else {
      measure("ceilings", measure_ceilings);
      measure("kernels", measure_kernels);
      measure("training", measure_training);
      measure("schedules", measure_schedules);
      measure("actors", measure_actors);
      measure("links", measure_links);
    }
  } catch (const interrupted&) {
    std::cerr << "bench: interrupted; the results have the measurements before the "
                 "interruption\n";
    exit_code = ended_by_user;
  }
  nlohmann::ordered_json results{{"command", o.output.command},
                                 {"measurements", measurements}};
  if (!comparison.is_null())
    results["beside"] = std::move(comparison);
  const auto text = json_text(results, 2) + "\n";
  if (const auto error = files.end_results(text); !error.empty()) {
    std::cerr << "bench: " << error << '\n';
    return 1;
  }
  return exit_code;
}

} // namespace

int main(int argc, char** argv) {
  const program_info program{
    .name = "bench",
    .description = "Measurements of this machine: peak rates, kernels at a model's "
                   "shapes, a loop without actors, actors and pipelines, an action and "
                   "a message. On a GPU: peak rates, training, gaps between actions, "
                   "checks, pipelines. Values are medians of alternating calls.",
    .keeps = false,
    .measures = true,
    .defaults = {.model = {.width = 256, .length = 128},
                 .mesh = {.stages = 1},
                 .schedules = {.names = {"1f1b"}, .steps = 1},
                 .evaluation = {.samples = 0}},
  };
  return run_program(program, argc, argv, bench);
}
