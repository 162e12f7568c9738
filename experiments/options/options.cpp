// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/options.hpp"

#include "experiments/options/option_list.hpp"
#include "kernels/bf16_choice.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// The schedules with their parameters, and the exchanges, for the end of --help-all.
std::string schedules_help() {
  std::string text = "Schedules:\n";
  for (const auto& entry : catalog()) {
    text += "  " + std::string{entry.name} + "\t" + std::string{entry.summary} + "\n";
    for (const auto& p : entry.parameters)
      text += "    " + std::string{p.name} + "=" + std::to_string(p.initial) + "\t"
              + std::string{p.meaning} + "\n";
  }
  text += "\nExchanges:";
  for (const auto& e : exchange_catalog())
    text += "\n  " + std::string{e.name} + "\t" + std::string{e.idea};
  return text;
}

/// The same for collectives.
std::string collectives_help() {
  std::string text = "Operations, each with an algorithm:";
  for (const auto& order : collective_catalog())
    text += "\n  " + std::string{name_of(order.operation)} + " "
            + std::string{order.name} + "\t" + std::string{order.idea};
  return text;
}

void add_outputs(option_list& to, typed_options& typed, const program_info& program) {
  add_output(
    to, typed.output,
    {.weights = program.trains && program.keeps,
     .results = program.keeps || program.measures || program.exchanges || program.tells,
     .report = program.keeps,
     .timeline = program.draws,
     .catalog = program.has_all});
}

/// Adds options of programs that run schedules, the most used groups first.
void add_runs(option_list& to, typed_options& typed, const program_info& program) {
  if (program.trains) {
    add_model(to, typed.model);
    add_data(to, typed.data);
  }
  add_schedules(to, typed.schedules, program.trains, program.measures);
  if (!program.measures)
    add_mesh(to, typed.mesh, program.names_exchange);
  if (program.trains && !program.measures)
    add_split(to, typed.mesh);
  if (program.trains)
    add_optimizer(to, typed.optimizer);
  add_outputs(to, typed, program);
  if (program.trains && program.keeps) {
    add_evaluation_data(to, typed.data);
    add_evaluation(to, typed.evaluation);
  }
  if (program.resumes)
    add_checkpoints(to, typed.checkpoint);
  if (program.trains)
    add_device(to, typed.run);
  if (program.measures)
    add_choose(to, typed.run);
  add_precision(to, typed.run, program.trains);
  if (program.trains)
    add_threads(to, typed.run);
  if (program.trains && !program.measures)
    add_clock(to, typed.run);
  if (!program.measures) {
    add_cost(to, typed.cost);
    add_machines(to, typed.machines);
  }
  if (program.distributes)
    add_nodes(to, typed.nodes, program.keeps);
  if (program.trains)
    add_experts(to, typed.model);
  if (program.measures) {
    add_parts(to, typed.parts);
    add_comparison(to, typed.comparison);
  }
}

/// Adds options of programs that compute only forwards, of saved weights.
void add_inference(option_list& to, typed_options& typed, const program_info& program) {
  add_weights(to, typed.inference);
  if (program.writes)
    add_writing(to, typed.inference, typed.data.seed);
  if (program.evaluates) {
    add_data_set(to, typed.data);
    add_evaluation_data(to, typed.data);
    add_scoring(to, typed.inference);
  }
  add_model(to, typed.model);
  add_stages(to, typed.mesh);
  add_outputs(to, typed, program);
  if (program.evaluates) {
    add_device_forwards(to, typed.run);
    add_precision_forwards(to, typed.run);
  }
  add_threads(to, typed.run);
  if (program.writes)
    add_experts_forwards(to, typed.model, "--expert-top-k");
  else
    add_experts_forwards(to, typed.model);
}

/// One sentence about options that contradict the clock, else an empty text.
std::string clock_error(const typed_options& typed, clock_kind clock) {
  if (clock == clock_kind::virtual_time)
    return {};
  if (!typed.cost.empty())
    return "--cost applies only in virtual time: say --clock virtual too, or leave "
           "--cost out";
  if (!typed.machines.empty())
    return "--machines applies only in virtual time: say --clock virtual too, or leave "
           "--machines out";
  return {};
}

/// The machines of a run. If there are machines at all, there must be several.
tl::expected<machine_options, std::string>
machines_of(const std::string& text, const link_cost& inside, int ranks) {
  auto result = parse_machines(text, inside, ranks);
  if (result && result->model.ranks_each >= ranks)
    return problem{"--machines " + text + ": all " + std::to_string(ranks)
                   + (ranks == 1 ? " rank is" : " ranks are")
                   + " on one machine, and no message goes between machines: give a "
                     "smaller ranks=, or leave --machines out"};
  return result;
}

} // namespace

std::string add_options(option_list& to, typed_options& typed,
                        const program_info& program) {
  if (program.exchanges) {
    add_collectives(to, typed.collectives);
    add_outputs(to, typed, program);
  } else if (program.infers()) {
    add_inference(to, typed, program);
  } else {
    add_runs(to, typed, program);
  }
  if (program.infers())
    return {};
  return program.exchanges ? collectives_help() : schedules_help();
}

tl::expected<options, std::string> parse(typed_options typed, bool trains) {
  if (auto error = set_sizes_from_files(typed.schedules, typed.mesh); !error.empty())
    return problem{error};
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 127; };
  for (const auto& [option, text] :
       {std::pair<std::string, std::string>{"--data", typed.data.text},
        {"--evaluate-data", typed.data.evaluation}})
    if (std::ranges::any_of(text, is_control)) // no checkpoint could store it
      return problem{option
                     + " has a control character, for example a tab, in its name: "
                       "rename the file or the folder"};
  auto model = parse(typed.model, typed.data.seed);
  if (!model)
    return problem{model.error()};
  auto mesh = parse(typed.mesh);
  if (!mesh)
    return problem{mesh.error()};
  const auto optimizer = parse(typed.optimizer);
  if (!optimizer)
    return problem{optimizer.error()};
  auto schedules = parse(typed.schedules, *mesh, trains ? &*optimizer : nullptr);
  if (!schedules)
    return problem{schedules.error()};
  auto nodes = parse(typed.nodes);
  if (!nodes)
    return problem{nodes.error()};
  typed.run.on_nodes = !nodes->nodes.empty();
  auto run = parse(typed.run);
  if (!run)
    return problem{run.error()};
  if (!trains)
    run->clock = clock_kind::virtual_time;
  else if (makes_bf16_by_cpu(run->products, run->processors))
    run->sums = sums_of(chosen_bf16_path().value()); // parse has checked the name
  if (auto error = clock_error(typed, run->clock); !error.empty())
    return problem{error};
  auto cost = parse_costs(typed.cost, *mesh);
  if (!cost)
    return problem{cost.error()};
  auto machines = machines_of(typed.machines, cost->link, mesh->ranks());
  if (!machines)
    return problem{machines.error()};
  if (auto error = validation_error(typed.evaluation); !error.empty())
    return problem{error};
  if (auto error = validation_error(typed.inference); !error.empty())
    return problem{error};
  if (auto error = validation_error(typed.checkpoint); !error.empty())
    return problem{error};
  if (auto error = validation_error(typed.output); !error.empty())
    return problem{error};
  if (!typed.checkpoint.folder.empty() && schedules->chosen.size() > 1)
    return problem{"--checkpoint takes the checkpoints of one schedule, and several "
                   "are given: name one schedule, or leave --checkpoint out"};
  if (!typed.checkpoint.resume.empty() && !typed.data.init.empty())
    return problem{"--resume and --init both give the initial weights of a training: "
                   "leave --resume or --init out"};
  if (!nodes->nodes.empty() && run->clock == clock_kind::virtual_time)
    return problem{"--nodes has no effect in virtual time, where a run has one "
                   "process: leave --nodes out, or say --clock real"};
  if (typed.evaluation.verify > 0 && !nodes->nodes.empty())
    return problem{"--verify proves only runs without nodes: leave --nodes out, or run "
                   "./troupe verify --nodes ..."};
  if (typed.evaluation.verify > 0
      && (!typed.checkpoint.resume.empty() || typed.checkpoint.resumes_if_any))
    return problem{"--verify proves a run from its first step on, and --resume starts "
                   "later: leave --verify or --resume out"};
  if (nodes->restart && typed.checkpoint.folder.empty() && !nodes->keep_steps)
    return problem{"--restart needs checkpoints or kept steps: say --checkpoint and "
                   "--checkpoint-every too, or --keep-steps"};
  const bool on_gpu = !run->processors.empty() && run->processors.front().is_gpu();
  auto comparison = parse_comparison(typed.comparison, on_gpu);
  if (!comparison)
    return problem{comparison.error()};
  if (!comparison->rows.empty() && !run->choose.empty())
    return problem{"--choose and --beside each measure nothing else: leave --choose or "
                   "--beside out"};
  auto parts = parse_parts(typed.parts, on_gpu);
  if (!parts)
    return problem{parts.error()};
  if (!typed.parts.empty() && !typed.comparison.empty())
    return problem{
      "--beside measures none of the parts: leave --parts or --beside out"};
  if (!typed.parts.empty() && !run->choose.empty())
    return problem{
      "--choose measures none of the parts: leave --parts or --choose out"};
  auto collectives = parse(typed.collectives);
  if (!collectives)
    return problem{collectives.error()};
  return options{.trains = trains,
                 .model = std::move(*model),
                 .data = parse(typed.data),
                 .mesh = std::move(*mesh),
                 .schedules = std::move(*schedules),
                 .optimizer = *optimizer,
                 .run = *run,
                 .cost = std::move(*cost),
                 .machines = std::move(*machines),
                 .evaluation = typed.evaluation,
                 .checkpoint = typed.checkpoint,
                 .nodes = std::move(*nodes),
                 .collectives = std::move(*collectives),
                 .inference = typed.inference,
                 .comparison = std::move(*comparison),
                 .parts = std::move(*parts),
                 .output = typed.output};
}

} // namespace troupe
