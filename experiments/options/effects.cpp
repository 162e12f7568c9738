// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/effects.hpp"

#include "experiments/options/cost_effects.hpp"
#include "experiments/options/own_effects.hpp"
#include "models/network.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {

namespace {

/// An option, a test whether the option was given, and the condition under which it has
/// an effect in a run. Options of an unknown model count as effective, since another
/// check refuses that model.
struct effect {
  std::string_view option;
  bool (*said)(const typed_options& typed, const typed_options& defaults);
  bool (*matters)(const options& o, const optimizer_options& of_run);
  std::string_view belongs; ///< The end of a sentence, for with_name().
};

template <auto Group, auto Member>
bool differs(const typed_options& a, const typed_options& b) {
  return a.*Group.*Member != b.*Group.*Member;
}

bool says_layers(const typed_options& a, const typed_options& b) {
  return a.model.layers.value_or(usual_layers) != b.model.layers.value_or(usual_layers);
}

bool has_width(const options& o, const optimizer_options&) {
  return !is_lenet(o.model.model);
}

bool reads_tokens(const options& o, const optimizer_options&) {
  return !is_lenet(o.model.model) && o.model.model != "mlp";
}

bool has_experts(const options& o, const optimizer_options& of_run) {
  return reads_tokens(o, of_run) && o.model.model != "gpt";
}

bool is_sgd(const options&, const optimizer_options& of_run) {
  return of_run.kind == optimizer_kind::sgd;
}

bool is_adamw(const options&, const optimizer_options& of_run) {
  return of_run.kind == optimizer_kind::adamw;
}

bool decays(const options&, const optimizer_options& of_run) {
  return of_run.weight_decay != 0;
}

bool counts_steps(const options& o, const optimizer_options&) {
  return !o.schedules.epochs;
}

bool has_replicas(const options& o, const optimizer_options&) {
  return o.mesh.data > 1;
}

bool has_shards(const options& o, const optimizer_options&) {
  return o.mesh.tensor > 1;
}

bool in_real_time(const options& o, const optimizer_options&) {
  return o.run.clock == clock_kind::real;
}

bool evaluates(const options& o, const optimizer_options&) {
  return o.evaluation.samples != 0;
}

/// Whether the program reads the data of --data, and not only the data of
/// --evaluate-data.
bool reads_data(const options& o, const optimizer_options&) {
  return o.inference.weights.empty() || o.data.evaluation.empty();
}

bool has_checkpoints(const options& o, const optimizer_options&) {
  return !o.checkpoint.folder.empty();
}

bool resumes(const options& o, const optimizer_options&) {
  return !o.checkpoint.resume.empty() || o.checkpoint.resumes_if_any;
}

bool restarts(const options& o, const optimizer_options&) {
  return o.nodes.restart;
}

bool has_nodes(const options& o, const optimizer_options&) {
  return !o.nodes.nodes.empty();
}

/// Whether any value is bf16 under --precision bf16.
bool stores(const options& o, const optimizer_options&) {
  const auto& sizes = o.cost.sizes;
  return o.trains || sizes.message > 0 || (o.mesh.sequence_parallel && sizes.sum > 0);
}

bool saves_weights(const options& o, const optimizer_options&) {
  return !o.output.save.empty();
}

bool prints(const options& o, const optimizer_options&) {
  return !o.output.quiet;
}

bool always(const options&, const optimizer_options&) {
  return true;
}

constexpr auto model = &typed_options::model;
constexpr auto data = &typed_options::data;
constexpr auto learns = &typed_options::optimizer;
constexpr auto length = &typed_options::schedules;
constexpr auto mesh = &typed_options::mesh;
constexpr auto when = &typed_options::run;
constexpr auto judges = &typed_options::evaluation;
constexpr auto saves = &typed_options::checkpoint;
constexpr auto nodes = &typed_options::nodes;
constexpr auto output = &typed_options::output;

constexpr std::string_view of_tokens =
  "applies only to gpt and moe: say --model gpt or moe, or leave % out";
constexpr std::string_view of_experts =
  "applies only to moe: say --model moe too, or leave % out";

constexpr std::string_view of_nodes =
  "applies only with --nodes: say --nodes too, or leave % out";

constexpr effect table[] = {
  {"--layers", says_layers, has_width,
   "applies only to gpt, moe and mlp, as lenet and lenet5 have five layers: leave % "
   "out"},
  {"--d-model", differs<model, &typed_model::width>, has_width,
   "applies only to gpt, moe and mlp, as lenet and lenet5 have fixed widths: leave % "
   "out"},
  {"--heads", differs<model, &typed_model::heads>, reads_tokens, of_tokens},
  {"--seq", differs<model, &typed_model::length>, reads_tokens, of_tokens},
  {"--vocab", differs<model, &typed_model::words>, reads_tokens, of_tokens},
  {"--data", differs<data, &typed_data::text>, reads_data,
   "has no effect, as --evaluate-data names the data to evaluate: leave --data or "
   "--evaluate-data out"},
  {"--experts", differs<model, &typed_model::experts>, has_experts, of_experts},
  {"--gate", differs<model, &typed_model::gate>, has_experts, of_experts},
  {"--top-k", differs<model, &typed_model::top_k>, has_experts, of_experts},
  {"--capacity", differs<model, &typed_model::capacity>, has_experts, of_experts},
  {"--balance", differs<model, &typed_model::balance>, has_experts, of_experts},
  {"--gate-noise", differs<model, &typed_model::gate_noise>, has_experts, of_experts},
  {"--shared-expert", differs<model, &typed_model::shared_expert>, has_experts,
   of_experts},
  {"--lr", differs<learns, &typed_optimizer::rate>, always, ""},
  {"--momentum", differs<learns, &typed_optimizer::momentum>, is_sgd, of_sgd},
  {"--betas", differs<learns, &typed_optimizer::betas>, is_adamw, of_adamw},
  {"--eps", differs<learns, &typed_optimizer::epsilon>, is_adamw, of_adamw},
  {"--weight-decay", differs<learns, &typed_optimizer::weight_decay>, always, ""},
  {"--decay", differs<learns, &typed_optimizer::decay>, decays,
   "has no effect, as --weight-decay is 0: give --weight-decay above 0, or leave % "
   "out"},
  {"--clip", differs<learns, &typed_optimizer::clip>, always, ""},
  {"--steps", differs<length, &typed_schedules::steps>, counts_steps,
   "and --epochs both give the length of a run: leave --steps or --epochs out"},
  {"--exchange", differs<mesh, &typed_mesh::exchange>, has_replicas,
   "has no effect with one data replica: say --mesh data=2 or more too, or leave % "
   "out"},
  {"--sequence-parallel", differs<mesh, &typed_mesh::sequence_parallel>, has_shards,
   "has no effect with one tensor shard: say --mesh tensor=2 or more too, or leave % "
   "out"},
  {"--stall-timeout", differs<when, &typed_run::stall_timeout>, in_real_time,
   "has no effect in virtual time, where a stall is found at once: say --clock real, "
   "or leave % out"},
  {"--precision", differs<when, &typed_run::precision>, stores,
   "in a simulation scales only --cost bytes=, and --cost tensor= with "
   "--sequence-parallel: give either cost, or leave % out"},
  {"--evaluate-every", differs<judges, &evaluation_options::every>, evaluates,
   "has no effect, as --evaluate-samples is 0: give --evaluate-samples above 0, or "
   "leave % out"},
  {"--keep", differs<saves, &checkpoint_options::keep>, has_checkpoints,
   "applies only with checkpoints: say --checkpoint and --checkpoint-every too, or "
   "leave % out"},
  {"--change", differs<saves, &checkpoint_options::change>, resumes,
   "names options that may differ from a checkpoint's: say --resume too, or leave % "
   "out"},
  {"--place", differs<nodes, &typed_nodes::node_map>, has_nodes, of_nodes},
  {"--failure-timeout", differs<nodes, &typed_nodes::failure_timeout>, has_nodes,
   of_nodes},
  {"--restart", differs<nodes, &typed_nodes::restart>, has_nodes, of_nodes},
  {"--keep-steps", differs<nodes, &typed_nodes::keep_steps>, restarts,
   "keeps the steps from which --restart continues: say --restart too, or leave % out"},
  {"--tls", differs<nodes, &typed_nodes::tls>, has_nodes, of_nodes},
  {"--insecure", differs<nodes, &typed_nodes::insecure>, has_nodes, of_nodes},
  {"--save-precision", differs<output, &output_options::save_precision>, saves_weights,
   "is the type of the weights that --save writes: say --save too, or leave % out"},
  {"--print", differs<output, &output_options::print>, prints,
   "prints timelines, and --quiet prints nothing: leave --print or --quiet out"},
};

/// One sentence about an option of all runs without effect, else an empty text.
std::string validation_error(const effect& e, const typed_options& typed,
                             const options& o, const typed_options& defaults) {
  if (!e.said(typed, defaults))
    return {};
  const auto matters_in = [&](const chosen_schedule& run) {
    return e.matters(o, run.optimizer);
  };
  const auto replaced_in = [&](const chosen_schedule& run) {
    return replaces(run, e.option);
  };
  const std::string name{e.option};
  if (std::ranges::none_of(o.schedules.chosen, matters_in))
    return name + " " + with_name(e.belongs, name);
  if (std::ranges::all_of(o.schedules.chosen, replaced_in))
    return name + " has no effect, as every schedule has a value of its own: leave "
           + name + " out, or the values in --schedule";
  return {};
}

} // namespace

std::string without_effect(const typed_options& typed, const options& o,
                           const program_info& program) {
  for (const auto& e : table)
    if (auto error = validation_error(e, typed, o, program.defaults); !error.empty())
      return error;
  for (const auto& chosen : o.schedules.chosen)
    if (auto error = without_effect(chosen); !error.empty())
      return error;
  return cost_without_effect(o);
}

} // namespace troupe
