#include "experiments/session/effects.hpp"

#include "experiments/options/mesh_options.hpp"
#include "experiments/options/optimizer_options.hpp"
#include "experiments/options/schedule_options.hpp"

#include <algorithm>
#include <span>

namespace troupe {

namespace {

/// An option, whether it was said, and what must hold for it to change anything. What
/// is wrong for another reason, as a model that does not exist, is none of this
/// table's: the option matters then.
struct effect {
  std::string_view option;
  bool (*said)(const options& o, const options& defaults);
  bool (*matters)(const options& o);
  std::string_view belongs;
};

template <auto Member>
bool differs(const options& a, const options& b) {
  return a.*Member != b.*Member;
}

bool says_layers(const options& a, const options& b) {
  return a.layers.value_or(4) != b.layers.value_or(4);
}

bool has_width(const options& o) {
  return o.model != "lenet";
}

bool reads_tokens(const options& o) {
  return o.model != "lenet" && o.model != "mlp";
}

bool has_experts(const options& o) {
  return o.model != "lenet" && o.model != "mlp" && o.model != "gpt";
}

bool is_sgd(const options& o) {
  return o.optimizer != "adamw";
}

bool is_adamw(const options& o) {
  return o.optimizer != "sgd";
}

bool decays(const options& o) {
  return weight_decay_of(o) != 0;
}

bool counts_steps(const options& o) {
  return !o.epochs;
}

bool has_replicas(const options& o) {
  const auto mesh = parse_mesh(o.mesh, o.stages);
  return !mesh || mesh->data > 1;
}

bool has_shards(const options& o) {
  const auto mesh = parse_mesh(o.mesh, o.stages);
  return !mesh || mesh->tensor > 1;
}

bool in_real_time(const options& o) {
  return o.clock != "virtual";
}

bool evaluates(const options& o) {
  return o.evaluate_samples != 0;
}

bool tells(const options& o) {
  return !o.quiet;
}

bool always(const options&) {
  return true;
}

constexpr std::string_view of_tokens =
  "is of gpt and moe: name one of them, or leave it out";
constexpr std::string_view of_experts =
  "is of experts, which only the model moe has: say --model moe too, or leave it out";
constexpr std::string_view of_sgd =
  "is of sgd: say --optimizer sgd too, or leave it out";
constexpr std::string_view of_adamw =
  "is of adamw: say --optimizer adamw too, or leave it out";

constexpr effect table[] = {
  {"--layers", says_layers, has_width,
   "is of gpt, moe and mlp; lenet has five layers: leave it out"},
  {"--d-model", differs<&options::width>, has_width,
   "is of gpt, moe and mlp; lenet has widths of its own: leave it out"},
  {"--heads", differs<&options::heads>, reads_tokens, of_tokens},
  {"--seq", differs<&options::length>, reads_tokens, of_tokens},
  {"--vocab", differs<&options::words>, reads_tokens, of_tokens},
  {"--experts", differs<&options::experts>, has_experts, of_experts},
  {"--gate", differs<&options::gate>, has_experts, of_experts},
  {"--top-k", differs<&options::top_k>, has_experts, of_experts},
  {"--capacity", differs<&options::capacity>, has_experts, of_experts},
  {"--balance", differs<&options::balance>, has_experts, of_experts},
  {"--gate-noise", differs<&options::gate_noise>, has_experts, of_experts},
  {"--shared-expert", differs<&options::shared_expert>, has_experts, of_experts},
  {"--lr", differs<&options::rate>, always, ""},
  {"--momentum", differs<&options::momentum>, is_sgd, of_sgd},
  {"--betas", differs<&options::betas>, is_adamw, of_adamw},
  {"--eps", differs<&options::epsilon>, is_adamw, of_adamw},
  {"--weight-decay", differs<&options::weight_decay>, always, ""},
  {"--decay", differs<&options::decay>, decays,
   "says what --weight-decay shrinks, and that is 0: give a weight decay too, or leave "
   "it out"},
  {"--clip", differs<&options::clip>, always, ""},
  {"--steps", differs<&options::steps>, counts_steps,
   "and --epochs both say how long a run is: give one of them"},
  {"--exchange", differs<&options::exchange>, has_replicas,
   "is between data replicas: say --mesh data=2 or more too, or leave it out"},
  {"--sequence-parallel", differs<&options::sequence_parallel>, has_shards,
   "shares sequences out among tensor shards: say --mesh tensor=2 or more too, or "
   "leave it out"},
  {"--stall-timeout", differs<&options::stall_timeout>, in_real_time,
   "is of real time; virtual time knows at once that nothing is left to do: say "
   "--clock real too, or leave it out"},
  {"--evaluate-every", differs<&options::evaluate_every>, evaluates,
   "evaluates on no samples, as --evaluate-samples is 0: give it some, or leave it "
   "out"},
  {"--print", differs<&options::print>, tells,
   "draws what --quiet keeps back: give one of them"},
};

/// The option that a schedule's key stands for.
std::string option_of(std::string key) {
  if (key == "beta1" || key == "beta2")
    return "--betas";
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

/// A run as the options name it.
struct named_run {
  schedule_text what;
  options own;

  /// Whether the schedule says this in place of the option for all runs.
  bool replaces(std::string_view option) const {
    if (option == "--betas")
      return what.values.contains("beta1") && what.values.contains("beta2");
    return std::ranges::any_of(what.values, [&](const auto& value) {
      return option_of(value.first) == option && value.second != "stage";
    });
  }
};

/// Nothing if a schedule's text is wrong: that is said elsewhere.
std::vector<named_run> runs_of(const options& o) {
  std::vector<named_run> result;
  for (auto& what :
       named_schedules(o.schedules).value_or(std::vector<schedule_text>{})) {
    auto values = what.values;
    auto own = with_own_options(o, values);
    if (!own)
      return {};
    result.push_back({std::move(what), std::move(*own)});
  }
  return result;
}

/// The option of the whole command line.
std::string fault_of(const effect& e, const options& o, const options& defaults,
                     const std::vector<named_run>& runs) {
  const auto matters_in = [&](const named_run& run) { return e.matters(run.own); };
  const auto replaced_in = [&](const named_run& run) { return run.replaces(e.option); };
  if (!e.said(o, defaults))
    return {};
  const std::string name{e.option};
  if (runs.empty() ? !e.matters(o) : std::ranges::none_of(runs, matters_in))
    return name + " " + std::string{e.belongs};
  if (!runs.empty() && std::ranges::all_of(runs, replaced_in))
    return name + " is said by every schedule for itself: leave one of them out";
  return {};
}

/// What one schedule says for itself.
std::string fault_of(const effect& e, const named_run& run, const options& defaults) {
  for (const auto& [key, value] : run.what.values)
    if (option_of(key) == e.option && e.said(run.own, defaults) && !e.matters(run.own))
      return run.what.name + ":" + key + "=" + value + ": " + key + " "
             + std::string{e.belongs};
  return {};
}

} // namespace

std::string without_effect(const options& o, const program_about& about) {
  const auto& defaults = about.defaults;
  const auto runs = about.trains ? runs_of(o) : std::vector<named_run>{};
  for (const auto& e : table) {
    if (auto wrong = fault_of(e, o, defaults, runs); !wrong.empty())
      return wrong;
    for (const auto& run : runs)
      if (auto wrong = fault_of(e, run, defaults); !wrong.empty())
        return wrong;
  }
  return {};
}

} // namespace troupe
