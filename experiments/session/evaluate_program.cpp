// SPDX-License-Identifier: BSD-3-Clause
#include "actors/inference/evaluation_run.hpp"
#include "experiments/options/opened_data.hpp"
#include "experiments/options/saved_options.hpp"
#include "experiments/report/files.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/performed_programs.hpp"
#include "experiments/session/saved_network.hpp"
#include "kernels/bf16_choice.hpp"
#include "models/data/checked_data.hpp"
#include "models/utf8.hpp"
#include "plan/memory_check.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

/// Adds the samples that options ask for, and the number of samples in a microbatch.
/// Returns one sentence about a mistake, else an empty text.
std::string add_samples(const options& o, evaluation_job& to) {
  auto data = opened_data(o);
  if (!data)
    return data.error();
  const auto held_out = (*data)->evaluation_size();
  if (held_out == 0)
    return o.data.text
           + " holds out no samples of this length, as the last tenth is too short: "
             "name more data with --data";
  const auto& whole = to.plan.whole;
  to.data = std::move(*data);
  to.samples = std::min(o.inference.samples.value_or(held_out), held_out);
  to.microbatch =
    std::min(to.samples, o.inference.microbatch.value_or(
                           samples_a_forward(whole, whole.reads_tokens ? 16 : 64)));
  std::vector<processor> of_each;
  for (int s = 0; s < to.plan.stages(); ++s)
    of_each.push_back(to.plan.processor_of(s));
  return check_processor_memory(of_each, bytes_needed(to), {bytes_of_program},
                                memory_of_this_machine(gpus_among(of_each)));
}

std::string text_of(double value, const char* form = "%.4f") {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string table(const evaluation_job& job, const evaluation_result& result) {
  const auto& score = result.final_score;
  const bool reads_tokens = job.plan.whole.reads_tokens;
  const double rate = static_cast<double>(job.samples) / result.run.seconds;
  char text[256];
  std::snprintf(
    text, sizeof text, "%8s  %8s  %10s  %8s  %9s\n%8lld  %8s  %10s  %8s  %9s\n",
    "samples", "loss", reads_tokens ? "perplexity" : "accuracy", "seconds", "samples/s",
    static_cast<long long>(job.samples), text_of(score.loss).c_str(),
    score.accuracy ? text_of(*score.accuracy * 100, "%.2f%%").c_str()
                   : text_of(std::exp(score.loss)).c_str(),
    text_of(result.run.seconds, "%.3f").c_str(), text_of(rate, "%.1f").c_str());
  std::string result_text = text;
  if (const auto floor = job.data->loss_floor())
    result_text +=
      "no model of this data can reach a loss below " + text_of(*floor) + " nats\n";
  if (job.data->evaluates_training_data())
    result_text +=
      "training with order=sequential has read the evaluated samples too\n";
  return result_text;
}

json to_json(const options& o, const saved_network& network, const evaluation_job& job,
             const evaluation_result& result) {
  const auto& whole = job.plan.whole;
  const auto& score = result.final_score;
  const auto samples = static_cast<double>(job.samples);
  json asked;
  for (const auto& [option, value] : options_to_save(o))
    asked[option] = value;
  return {{"command", o.output.command},
          {"weights", network.from},
          {"options", asked},
          {"data", job.data->description()},
          {"evaluates_training_data", job.data->evaluates_training_data()},
          {"bf16_path", makes_bf16_by_cpu(o.run.products, o.run.processors)
                          ? json(to_text(chosen_bf16_path().value()))
                          : json()},
          {"stages", job.plan.stages()},
          {"microbatch_size", job.microbatch},
          {"samples", job.samples},
          {"predictions", job.samples * whole.rows},
          {"loss", score.loss},
          {"perplexity", whole.reads_tokens ? json(std::exp(score.loss)) : json()},
          {"accuracy", score.accuracy ? json(*score.accuracy) : json()},
          {"seconds", result.run.seconds},
          {"samples_per_second", samples / result.run.seconds},
          {"bytes", result.run.bytes}};
}

tl::expected<program_end, std::string>
perform_evaluation(const options& o, const program_listener& listener) {
  output_files files{o};
  if (auto error = files.prepare(); !error.empty())
    return tl::unexpected{error};
  auto network = open_saved_network(o);
  if (!network)
    return tl::unexpected{network.error()};
  for (const auto& warning : warnings_of(*network))
    listener.note(warning);
  evaluation_job job{.plan = std::move(network->plan)};
  if (auto error = add_samples(o, job); !error.empty())
    return tl::unexpected{error};
  network->plan = job.plan;
  auto& out = o.output.results_on_stdout() ? std::cerr : std::cout;
  if (!o.output.quiet)
    out << description(*network) << ", microbatches of " << job.microbatch << "; "
        << job.data->description() << "\n\n"
        << std::flush;
  const auto result = evaluate(job, &interruption());
  program_end end;
  const auto fail = [&](const std::string& sentence, int exit_code) {
    listener.error(sentence);
    end.exit_code = exit_code;
    return end;
  };
  if (result.run.outcome == ending::failed)
    return fail(result.run.failure, 1);
  if (result.run.outcome == ending::interrupted)
    return fail("interrupted; there is no result", ended_by_user);
  end.table = table(job, result);
  end.results = json_text(to_json(o, *network, job, result), 2) + "\n";
  if (!o.output.quiet)
    out << end.table;
  if (const auto failed = files.end_results(end.results); !failed.empty())
    return fail(failed, 1);
  return std::isfinite(result.final_score.loss)
           ? end
           : fail("the loss is not finite: the weights are unusable", 1);
}

} // namespace

performed_program evaluate_program() {
  return {{
            .name = "evaluate",
            .description =
              "Loss, perplexity and accuracy of saved weights on held-out data, "
              "by stages that run only forwards.",
            .keeps = false,
            .tells = true,
            .evaluates = true,
            .defaults = {.mesh = {.stages = 1}, .schedules = {.names = {"1f1b"}}},
          },
          perform_evaluation};
}

} // namespace troupe
