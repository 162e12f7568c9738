// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/options.hpp"

#include "experiments/options/parsing.hpp"
#include "kernels/bf16_choice.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

/// Options that contradict each other: a condition, and the sentence for the user.
struct contradiction {
  bool (*holds)(const typed_options& typed, const options& o);
  const char* sentence;
};

bool has_control_character(const std::string& text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 127; });
}

bool is_real(const options& o) {
  return o.run.clock == clock_kind::real;
}

bool resumes(const checkpoint_options& o) {
  return !o.resume.empty() || o.resumes_if_any;
}

using typed_t = const typed_options&;
using options_t = const options&;

/// Contradictions of names, which no checkpoint could store.
constexpr contradiction of_names[] = {
  {[](typed_t t, options_t) { return has_control_character(t.data.text); },
   "--data has a control character, for example a tab, in its name: rename the file or "
   "the folder"},
  {[](typed_t t, options_t) { return has_control_character(t.data.evaluation); },
   "--evaluate-data has a control character, for example a tab, in its name: rename "
   "the file or the folder"},
};

/// Contradictions of the clock, before costs are parsed.
constexpr contradiction of_clock[] = {
  {[](typed_t t, options_t o) { return is_real(o) && !t.cost.empty(); },
   "--cost applies only in virtual time: say --clock virtual too, or leave --cost out"},
  {[](typed_t t, options_t o) { return is_real(o) && !t.machines.empty(); },
   "--machines applies only in virtual time: say --clock virtual too, or leave "
   "--machines out"},
};

/// Contradictions of options that are all parsed.
constexpr contradiction of_groups[] = {
  {[](typed_t, options_t o) {
     return !o.checkpoint.folder.empty() && o.schedules.chosen.size() > 1;
   },
   "--checkpoint takes the checkpoints of one schedule, and several are given: name "
   "one schedule, or leave --checkpoint out"},
  {[](typed_t, options_t o) {
     return !o.checkpoint.resume.empty() && !o.data.init.empty();
   },
   "--resume and --init both give the initial weights of a training: leave --resume or "
   "--init out"},
  {[](typed_t, options_t o) { return !o.nodes.nodes.empty() && !is_real(o); },
   "--nodes has no effect in virtual time, where a run has one process: leave --nodes "
   "out, or say --clock real"},
  {[](typed_t, options_t o) {
     return o.evaluation.verify > 0 && !o.nodes.nodes.empty();
   },
   "--verify proves only runs without nodes: leave --nodes out, or run ./troupe verify "
   "--nodes ..."},
  {[](typed_t, options_t o) {
     return o.evaluation.verify > 0 && resumes(o.checkpoint);
   },
   "--verify proves a run from its first step on, and --resume starts later: leave "
   "--verify or --resume out"},
  {[](typed_t, options_t o) {
     return o.nodes.restart && o.checkpoint.folder.empty() && !o.nodes.keep_steps;
   },
   "--restart needs checkpoints or kept steps: say --checkpoint and --checkpoint-every "
   "too, or --keep-steps"},
  {[](typed_t, options_t o) {
     return !o.comparison.rows.empty() && !o.run.choose.empty();
   },
   "--choose and --beside each measure nothing else: leave --choose or --beside out"},
  {[](typed_t t, options_t) { return !t.parts.empty() && !t.comparison.empty(); },
   "--beside measures none of the parts: leave --parts or --beside out"},
  {[](typed_t t, options_t o) { return !t.parts.empty() && !o.run.choose.empty(); },
   "--choose measures none of the parts: leave --parts or --choose out"},
};

/// A mistake in the options, while parse() runs.
struct mistake : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// \throws mistake if there is an error
void refuse(const std::string& error) {
  if (!error.empty())
    throw mistake{error};
}

void refuse(std::span<const contradiction> rows, typed_t typed, options_t o) {
  for (const auto& [holds, sentence] : rows)
    if (holds(typed, o))
      throw mistake{sentence};
}

/// \throws mistake if there is no value
template <class Value>
Value checked(tl::expected<Value, std::string> parsed) {
  if (!parsed)
    throw mistake{parsed.error()};
  return std::move(*parsed);
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

/// \throws mistake
options checked_options(typed_options typed, bool trains) {
  refuse(set_sizes_from_files(typed.schedules, typed.mesh));
  options o{.trains = trains};
  refuse(of_names, typed, o);
  o.model = checked(parse(typed.model, typed.data.seed));
  o.data = parse(typed.data);
  o.mesh = checked(parse(typed.mesh));
  o.optimizer = checked(parse(typed.optimizer));
  o.schedules =
    checked(parse(typed.schedules, o.mesh, trains ? &o.optimizer : nullptr));
  o.nodes = checked(parse(typed.nodes));
  typed.run.on_nodes = !o.nodes.nodes.empty();
  o.run = checked(parse(typed.run));
  if (!trains)
    o.run.clock = clock_kind::virtual_time;
  else if (makes_bf16_by_cpu(o.run.products, o.run.processors))
    o.run.sums = sums_of(chosen_bf16_path().value()); // parse has checked the name
  refuse(of_clock, typed, o);
  o.cost = checked(parse_costs(typed.cost, o.mesh));
  o.machines = checked(machines_of(typed.machines, o.cost.link, o.mesh.ranks()));
  for (const auto& error :
       {validation_error(typed.evaluation), validation_error(typed.inference),
        validation_error(typed.checkpoint), change_error(typed.checkpoint.change),
        validation_error(typed.output)})
    refuse(error);
  o.evaluation = typed.evaluation;
  o.inference = typed.inference;
  o.checkpoint = typed.checkpoint;
  o.output = typed.output;
  const bool on_gpu = !o.run.processors.empty() && o.run.processors.front().is_gpu();
  o.comparison = checked(parse_comparison(typed.comparison, on_gpu));
  o.parts = checked(parse_parts(typed.parts, on_gpu));
  refuse(of_groups, typed, o);
  o.collectives = checked(parse(typed.collectives));
  return o;
}

} // namespace

tl::expected<options, std::string> parse(typed_options typed, bool trains) {
  try {
    return checked_options(std::move(typed), trains);
  } catch (const mistake& error) {
    return problem{error.what()};
  }
}

} // namespace troupe
