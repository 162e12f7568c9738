// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's programs that train the same network, in rounds that alternate with
// troupe's. Both therefore see the machine in the same state. gpt2_in_pytorch.py has
// the network, rounds_in_pytorch.py the programs.

#include "experiments/benchmarks/benchmarks.hpp"
#include "experiments/benchmarks/pytorch_rounds.hpp"
#include "experiments/benchmarks/training_steps.hpp"
#include "experiments/options/build_info.hpp"
#include "experiments/session/interruption.hpp"
#include "kernels/cpu_name.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;
using problem = tl::unexpected<std::string>;

constexpr int rounds = 5;
constexpr int ranks_of_several = 2;
constexpr double round_seconds = 0.7;      // of troupe's plain loop
constexpr double most_round_seconds = 2.5; // of PyTorch's program

/// A program of PyTorch's, and the run of troupe that does the same.
struct pytorch_row {
  std::string name, title;
  const char* schedule; ///< Of troupe.
  int ranks = 1;        ///< Stages or replicas; PyTorch has a process for each.
  bool replicates = false;
};

pytorch_row row_called(const std::string& name) {
  const std::vector<pytorch_row> rows{
    {"plain", "plain loop", "1f1b"},
    {"compiled", "plain loop, compiled", "1f1b"},
    {"graphs", "plain loop, compiled, CUDA graphs", "1f1b"},
    {"ddp", "data parallel", "1f1b", ranks_of_several, true},
    {"1f1b", "1F1B", "1f1b", ranks_of_several},
    {"interleaved", "interleaved 1F1B", "interleaved", ranks_of_several},
    {"zb-v", "zero-bubble V", "zb-v", ranks_of_several}};
  return *std::ranges::find(rows, name, &pytorch_row::name);
}

std::string title_of(const pytorch_row& row) {
  return row.title
         + (row.ranks > 1 ? ", " + std::to_string(row.ranks)
                              + (row.replicates ? " replicas" : " ranks")
                          : "");
}

/// The run of troupe for a row. The error is one sentence: why there is none.
tl::expected<run_plan, std::string> plan_of_row(const benchmark& b,
                                                const pytorch_row& row, int steps) {
  const auto sch = *find_schedule(row.schedule);
  const int stages = row.replicates ? 1 : stages_on(sch.where, row.ranks);
  auto plan = b.plan;
  if (row.replicates) {
    if (plan.dims.microbatches % row.ranks != 0)
      return problem{"--microbatches " + std::to_string(plan.dims.microbatches)
                     + " is no multiple of " + std::to_string(row.ranks)
                     + " replicas: give an even --microbatches"};
    plan.mesh[axis::data] = row.ranks;
    plan.dims.microbatches /= row.ranks;
    plan.exchange = exchange_catalog().front();
  }
  if (stages > plan.work->whole.units())
    return problem{std::to_string(stages)
                   + " stages need at least as many blocks: say --layers "
                   + std::to_string(stages)};
  plan = plan_of_steps(std::move(plan), sch, stages, steps);
  if (auto error = validation_error(plan); !error.empty())
    return problem{std::move(error)};
  return plan;
}

/// The number of blocks of each stage, as "2,2".
std::string blocks_of(const run_plan& plan) {
  const auto& units = plan.work->whole.unit_of_layer;
  const auto& first = plan.work->first_layers;
  const auto unit_at = [&](int layer) {
    return layer < static_cast<int>(units.size())
             ? units[static_cast<std::size_t>(layer)]
             : units.back() + 1;
  };
  std::string result;
  for (std::size_t s = 0; s + 1 < first.size(); ++s)
    result +=
      (s > 0 ? "," : "") + std::to_string(unit_at(first[s + 1]) - unit_at(first[s]));
  return result;
}

std::string text_of(double x) {
  char result[32];
  std::snprintf(result, sizeof result, "%.17g", x);
  return result;
}

/// The command-line options of PyTorch's program for a row.
std::vector<std::string> options_of_row(const benchmark& b, const pytorch_row& row,
                                        const run_plan& plan) {
  const auto& m = b.model;
  const auto& optimizer = plan.work->optimizer;
  const auto where = plan.machine.processor_of(0);
  std::vector<std::string> result{
    "--row",       row.name,
    "--ranks",     std::to_string(row.ranks),
    "--blocks",    blocks_of(plan),
    "--threads",   std::to_string(plan.machine.threads),
    "--device",    where.is_gpu() ? "cuda:" + std::to_string(where.gpu) : "cpu",
    "--precision", b.asked.run.products == precision::bf16 ? "bf16" : "fp32",
    "--optimizer", optimizer.name,
    "--betas",     text_of(optimizer.beta1) + "," + text_of(optimizer.beta2)};
  const auto add = [&](const char* option, const std::string& value) {
    result.insert(result.end(), {option, value});
  };
  add("--layers", std::to_string(m.layers));
  add("--d-model", std::to_string(m.width));
  add("--heads", std::to_string(m.heads));
  add("--seq", std::to_string(m.length));
  add("--vocab", std::to_string(m.words));
  add("--batch", std::to_string(plan.work->batch));
  add("--microbatches", std::to_string(plan.dims.microbatches * plan.mesh[axis::data]));
  add("--lr", text_of(optimizer.rate));
  add("--momentum", text_of(optimizer.momentum));
  add("--eps", text_of(optimizer.epsilon));
  add("--weight-decay", text_of(optimizer.weight_decay));
  if (m.tied)
    result.emplace_back("--tied");
  return result;
}

/// Tokens a second of both programs, one pair a round.
struct measured_row {
  std::vector<double> ours, theirs;
};

/// Steps of PyTorch's program in a round: as many as troupe's, but no more than the
/// time allows.
int steps_of_round(double seconds_of_a_step, int most) {
  return seconds_of_a_step > 0 ? std::clamp(
           static_cast<int>(most_round_seconds / seconds_of_a_step), 1, most)
                               : most;
}

/// Measures the rounds of a row, in which both programs take turns. The error is one
/// sentence: why there are no rounds.
tl::expected<measured_row, std::string> measured(const benchmark& b,
                                                 const pytorch_row& row,
                                                 const std::string& python, int steps,
                                                 json& info) {
  const auto plan = plan_of_row(b, row, steps);
  if (!plan)
    return problem{plan.error()};
  const auto theirs = pytorch_rounds::start(python, options_of_row(b, row, *plan));
  if (!theirs)
    return problem{theirs.error()};
  info = json::parse((*theirs)->info());
  if (const auto values = info.value("parameters", std::int64_t{0});
      values != plan->work->whole.values())
    return problem{"the networks differ: PyTorch's has " + std::to_string(values)
                   + " parameters, and troupe's has "
                   + std::to_string(plan->work->whole.values())};
  const auto tokens = static_cast<double>(plan->work->batch * plan->work->whole.rows);
  const int their_steps = steps_of_round(info.value("seconds", 0.0), steps - 1);
  measured_row result;
  for (int round = 0; round < rounds; ++round) {
    result.ours.push_back(tokens / mean_seconds_of_a_step(*plan));
    const auto seconds = (*theirs)->train(their_steps);
    if (!seconds)
      return problem{seconds.error()};
    result.theirs.push_back(tokens / *seconds);
  }
  return result;
}

/// The ratios of the rounds, the smallest first.
std::vector<double> ratios_of(const measured_row& row) {
  std::vector<double> result;
  for (std::size_t i = 0; i < row.ours.size(); ++i)
    result.push_back(row.ours[i] / row.theirs[i]);
  std::ranges::sort(result);
  return result;
}

json row_json(const pytorch_row& row,
              const tl::expected<measured_row, std::string>& outcome) {
  json result{{"row", row.name}, {"title", title_of(row)}, {"ranks", row.ranks}};
  const auto ratios = outcome ? ratios_of(*outcome) : std::vector<double>{};
  result["ratio"] = outcome ? json(median(ratios)) : json(nullptr);
  result["ratio_range"] = outcome ? json{ratios.front(), ratios.back()} : json(nullptr);
  result["tokens_per_second"] = outcome ? json(outcome->ours) : json(nullptr);
  result["tokens_per_second_of_pytorch"] =
    outcome ? json(outcome->theirs) : json(nullptr);
  result["failure"] = outcome ? json(nullptr) : json(outcome.error());
  return result;
}

void print(std::FILE* to, const pytorch_row& row,
           const tl::expected<measured_row, std::string>& outcome) {
  if (!outcome) {
    std::fprintf(to, "%-34s not measured: %s\n", title_of(row).c_str(),
                 outcome.error().c_str());
  } else {
    const auto ratios = ratios_of(*outcome);
    std::fprintf(to, "%-34s %10.0f %10.0f %7.2f  (%.2f to %.2f)\n",
                 title_of(row).c_str(), median(outcome->ours), median(outcome->theirs),
                 median(ratios), ratios.front(), ratios.back());
  }
  std::fflush(to);
}

/// One line about the machine and the versions of the software.
std::string machine_of(const json& result) {
  const auto& pytorch = result["pytorch"];
  return result["processor"].get<std::string>() + ", "
         + std::to_string(result["threads"].get<int>()) + " threads"
         + (pytorch.is_null() ? ""
                              : "; PyTorch " + pytorch["torch"].get<std::string>()
                                  + " with BLAS " + pytorch["blas"].get<std::string>());
}

/// One sentence if PyTorch's programs do not train the same; empty if both do.
std::string training_error(const benchmark& b) {
  const auto& optimizer = b.plan.work->optimizer;
  if (b.model.model != "gpt")
    return "trains gpt: say --model gpt";
  if (b.plan.uneven)
    return "has equal microbatches: leave --microbatch-sizes and --sequence-lengths "
           "out";
  if (b.plan.work->batch % b.plan.dims.microbatches != 0)
    return "has equal microbatches: choose a --batch that is a multiple of "
           "--microbatches";
  if (optimizer.name != "adamw" && optimizer.name != "sgd")
    return "updates by adamw or sgd: say --optimizer adamw, for example";
  if (optimizer.clip != 0)
    return "does not clip: leave --clip out";
  if (optimizer.schedule.cosine || optimizer.schedule.warmup > 0)
    return "has one rate: leave --lr-schedule out";
  if (optimizer.decay_only_matrices)
    return "decays all parameters: leave --decay out";
  return {};
}

} // namespace

tl::expected<json, std::string> measure_pytorch_comparison(const benchmark& b,
                                                           std::FILE* to) {
  if (const auto error = training_error(b); !error.empty())
    return problem{"--beside pytorch " + error};
  const auto python = python_with_pytorch();
  const int steps =
    std::clamp(static_cast<int>(round_seconds
                                / mean_seconds_of_a_step(plan_of_1f1b(b.plan, 1, 3))),
               2, 50)
    + 1;
  json result{{"python", python ? json(*python) : json(nullptr)},
              {"pytorch", nullptr},
              {"processor", name_of_cpu()},
              {"troupe", build_info()},
              {"rounds", rounds},
              {"steps_a_round", steps - 1},
              {"threads", b.plan.machine.threads},
              {"rows", json::array()}};
  if (to != nullptr)
    std::fprintf(to, "%-34s %10s %10s %7s\n", "tokens/s, medians of 5 rounds", "troupe",
                 "PyTorch", "ratio");
  for (const auto& name : b.asked.comparison.rows) {
    if (interruption())
      break;
    const auto row = row_called(name);
    json info = nullptr;
    const auto outcome =
      python ? measured(b, row, *python, steps, info)
             : tl::expected<measured_row, std::string>{problem{python.error()}};
    if (!info.is_null() && result["pytorch"].is_null())
      for (const auto* const key : {"torch", "python", "blas", "attention"})
        result["pytorch"][key] = info.value(key, "");
    if (to != nullptr)
      print(to, row, outcome);
    result["rows"].push_back(row_json(row, outcome));
    if (outcome && !interruption())
      b.report({"beside PyTorch", title_of(row), median(outcome->ours), "tokens/s",
                median(ratios_of(*outcome)), "PyTorch"});
  }
  if (to != nullptr)
    std::fprintf(to, "%s\n", machine_of(result).c_str());
  return result;
}

} // namespace troupe
