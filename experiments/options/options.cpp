// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/options.hpp"

#include "experiments/options/option_list.hpp"
#include "kernels/bf16_choice.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// The schedules with their parameters, and the exchanges, for the end of --help-all.
std::string about_schedules() {
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
std::string about_collectives() {
  std::string text = "Operations, each with an algorithm:";
  for (const auto& order : collective_catalog())
    text += "\n  " + std::string{name_of(order.what)} + " " + std::string{order.name}
            + "\t" + std::string{order.idea};
  return text;
}

void add_outputs(option_list& to, typed_options& place, const program_about& about) {
  add_output(
    to, place.output,
    {.weights = about.trains && about.keeps,
     .results = about.keeps || about.measures || about.exchanges || about.tells,
     .report = about.keeps,
     .timeline = about.draws,
     .catalog = about.has_all});
}

/// Adds options of programs that run schedules, the most used groups first.
void add_runs(option_list& to, typed_options& place, const program_about& about) {
  if (about.trains) {
    add_model(to, place.model);
    add_data(to, place.data);
  }
  add_schedules(to, place.schedules, about.trains, about.measures);
  if (!about.measures)
    add_mesh(to, place.mesh, about.names_exchange);
  if (about.trains && !about.measures)
    add_split(to, place.mesh);
  if (about.trains)
    add_optimizer(to, place.optimizer);
  add_outputs(to, place, about);
  if (about.trains && about.keeps) {
    add_evaluation_data(to, place.data);
    add_evaluation(to, place.evaluation);
  }
  if (about.resumes)
    add_checkpoints(to, place.checkpoint);
  if (about.trains)
    add_device(to, place.run);
  add_precision(to, place.run, about.trains);
  if (about.trains)
    add_threads(to, place.run);
  if (about.trains && !about.measures)
    add_clock(to, place.run);
  if (!about.measures) {
    add_cost(to, place.cost);
    add_machines(to, place.machines);
  }
  if (about.distributes)
    add_nodes(to, place.nodes, about.keeps);
  if (about.trains)
    add_experts(to, place.model);
  if (about.measures)
    add_beside(to, place.beside);
}

/// Adds options of programs that compute only forwards, of saved weights.
void add_inference(option_list& to, typed_options& place, const program_about& about) {
  add_weights(to, place.inference);
  if (about.writes)
    add_writing(to, place.inference, place.data.seed);
  if (about.evaluates) {
    add_data_set(to, place.data);
    add_evaluation_data(to, place.data);
    add_scoring(to, place.inference);
  }
  add_model(to, place.model);
  add_stages(to, place.mesh);
  add_outputs(to, place, about);
  if (about.evaluates) {
    add_device_forwards(to, place.run);
    add_precision_forwards(to, place.run);
  }
  add_threads(to, place.run);
  if (about.writes)
    add_experts_forwards(to, place.model, "--expert-top-k");
  else
    add_experts_forwards(to, place.model);
}

/// One sentence about options that contradict the clock, else an empty text.
std::string refusal_of_clock(const typed_options& typed, clock_kind clock) {
  if (clock == clock_kind::virtual_time)
    return {};
  if (!typed.cost.empty())
    return "--cost is of virtual time: say --clock virtual too, or leave it out";
  if (!typed.machines.empty())
    return "--machines is of virtual time: say --clock virtual too, or leave it out";
  return {};
}

/// The machines of a run. If there are machines at all, there must be several.
tl::expected<machine_options, std::string>
machines_of(const std::string& text, const link_cost& inside, int ranks) {
  auto result = parse_machines(text, inside, ranks);
  if (result && result->model.ranks_each >= ranks)
    return problem{"--machines " + text + ": all " + std::to_string(ranks)
                   + (ranks == 1 ? " rank stands" : " ranks stand")
                   + " on one machine, so that machines exchange nothing: give a "
                     "smaller ranks=, or leave it out"};
  return result;
}

} // namespace

std::string add_options(option_list& to, typed_options& place,
                        const program_about& about) {
  if (about.exchanges) {
    add_collectives(to, place.collectives);
    add_outputs(to, place, about);
  } else if (about.infers()) {
    add_inference(to, place, about);
  } else {
    add_runs(to, place, about);
  }
  if (about.infers())
    return {};
  return about.exchanges ? about_collectives() : about_schedules();
}

tl::expected<options, std::string> parse(typed_options typed, bool trains) {
  if (auto wrong = take_sizes_of_files(typed.schedules, typed.mesh); !wrong.empty())
    return problem{wrong};
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 127; };
  for (const auto& [option, text] :
       {std::pair<std::string, std::string>{"--data", typed.data.text},
        {"--evaluate-data", typed.data.evaluation}})
    if (std::ranges::any_of(text, is_control)) // no checkpoint could store it
      return problem{option
                     + " has a control character in its name, as a tab or a line's "
                       "end: rename the file or the folder"};
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
  if (auto wrong = refusal_of_clock(typed, run->clock); !wrong.empty())
    return problem{wrong};
  auto cost = parse_costs(typed.cost, *mesh);
  if (!cost)
    return problem{cost.error()};
  auto machines = machines_of(typed.machines, cost->link, mesh->ranks());
  if (!machines)
    return problem{machines.error()};
  if (auto wrong = refusal(typed.evaluation); !wrong.empty())
    return problem{wrong};
  if (auto wrong = refusal(typed.inference); !wrong.empty())
    return problem{wrong};
  if (auto wrong = refusal(typed.checkpoint); !wrong.empty())
    return problem{wrong};
  if (auto wrong = refusal(typed.output); !wrong.empty())
    return problem{wrong};
  if (!typed.checkpoint.resume.empty() && !typed.data.init.empty())
    return problem{"--resume and --init both give the first weights of a training: "
                   "leave one of them out"};
  if (!nodes->nodes.empty() && run->clock == clock_kind::virtual_time)
    return problem{"--nodes: a run in virtual time has one process: leave --nodes out, "
                   "or say --clock real"};
  if (typed.evaluation.verify > 0 && !nodes->nodes.empty())
    return problem{"--verify proves runs of this process alone: leave --nodes out, or "
                   "give them to the program verify"};
  if (typed.evaluation.verify > 0
      && (!typed.checkpoint.resume.empty() || typed.checkpoint.resumes_if_any))
    return problem{"--verify proves a run from its first step on, and --resume starts "
                   "later: leave one of them out"};
  if (nodes->restart && typed.checkpoint.folder.empty() && !nodes->keep_steps)
    return problem{"--restart continues from a checkpoint or from kept steps: say "
                   "--checkpoint and --checkpoint-every too, or --keep-steps"};
  const auto& first = run->processors;
  auto beside = parse_beside(typed.beside, !first.empty() && first.front().is_gpu());
  if (!beside)
    return problem{beside.error()};
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
                 .beside = std::move(*beside),
                 .output = typed.output};
}

} // namespace troupe
