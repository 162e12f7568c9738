// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/model_options.hpp"
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"

#include <algorithm>

namespace troupe {

namespace {

bool is_builtin(run_view run) {
  return !run.o.own.network;
}

bool has_width(run_view run) {
  return is_builtin(run) && !is_lenet(run.o.model.model);
}

bool reads_tokens(run_view run) {
  return has_width(run) && run.o.model.model != "mlp";
}

bool has_experts(run_view run) {
  return reads_tokens(run) && run.o.model.model != "gpt";
}

constexpr effect_rule of_tokens{
  reads_tokens, "applies only to gpt and moe: say --model gpt or moe, or leave % out"};
constexpr effect_rule of_experts{
  has_experts, "applies only to moe: say --model moe too, or leave % out"};

/// A row for a member of typed_model.
template <auto Member>
option_row model_row(std::string names, std::string help, option_rules rules) {
  return row<&typed_options::model, Member>(std::move(names), std::move(help), rules);
}

template <auto... Path>
constexpr auto model_value = value_of<&options::model, Path...>;

template <auto Member>
constexpr auto expert_value = model_value<&model_options::experts, Member>;

} // namespace

option_rows model_rows() {
  using typed = typed_model;
  using enum recorded_in;
  using value = model_options;
  return under(
    "Model and data", programs::computes,
    {model_row<&typed::name>(
       "--model", "Model: " + model_names() + ".",
       {.record = {network, model_value<&value::model>, is_builtin}}),
     model_row<&typed::layers>(
       "--layers", "Blocks of gpt and moe, or linear layers of mlp.",
       {.effect = {has_width, "applies only to gpt, moe and mlp, as lenet and lenet5 "
                              "have five layers: leave % out"},
        .record = {network, model_value<&value::layers>}}),
     model_row<&typed::width>(
       "--d-model", "Width of gpt and moe, or hidden units of mlp.",
       {.effect = {has_width, "applies only to gpt, moe and mlp, as lenet and lenet5 "
                              "have fixed widths: leave % out"},
        .record = {network, model_value<&value::width>}}),
     model_row<&typed::heads>(
       "--heads", "Attention heads of gpt and moe.",
       {.effect = of_tokens, .record = {network, model_value<&value::heads>}}),
     model_row<&typed::length>(
       "--seq", "Tokens of a sample of gpt and moe.",
       {.effect = of_tokens, .record = {init, model_value<&value::length>}}),
     model_row<&typed::words>(
       "--vocab",
       "Size of the vocabulary of gpt and moe. A text's bytes are tokens 0 to 255; "
       "GPT-2's tokens are 0 to 50256.",
       {.effect = of_tokens, .record = {init, model_value<&value::words>}}),
     model_row<&typed::tied>(
       "--tied",
       "The head and the embedding of gpt and moe use one matrix, like those of GPT-2.",
       {.record = {init, model_value<&value::tied>,
                   [](run_view r) { return r.o.model.tied; }}})});
}

option_rows expert_rows() {
  using typed = typed_model;
  using enum recorded_in;
  return under(
    "Experts of moe, in every second block of a gpt", programs::learns,
    {model_row<&typed::experts>(
       "--experts", "Experts of a block that has experts.",
       {.has = programs::computes,
        .effect = of_experts,
        .record = {network, expert_value<&expert_options::count>}}),
     model_row<&typed::top_k>(
       "--top-k,--expert-top-k",
       "Experts that each token is sent to. Default: set by --gate.",
       {.has = [](const program_info& p) { return p.trains && !p.writes; },
        .effect = of_experts,
        .record = {init, expert_value<&expert_options::chosen>},
        .changeable = true}),
     model_row<&typed::top_k>(
       "--expert-top-k", "Experts that each token is sent to. Default: set by --gate.",
       {.has = programs::writes, .effect = of_experts}),
     model_row<&typed::shared_expert>(
       "--shared-expert",
       "A block with experts has one more expert, which receives every token.",
       {.has = programs::computes,
        .effect = of_experts,
        .record = {init, expert_value<&expert_options::shared>,
                   [](run_view r) {
                     return has_experts(r) && r.o.model.experts.shared;
                   }}}),
     model_row<&typed::gate>(
       "--gate",
       "Gate, which sets the defaults of --top-k and --capacity.\n"
       "switch\t--top-k 1, --capacity 1.25\n"
       "gshard\t--top-k 2, --capacity 1. An expert then accepts 2 * tokens / experts "
       "tokens, as in GShard's paper",
       {.effect = of_experts}),
     model_row<&typed::capacity>(
       "--capacity",
       "Tokens of a microbatch that an expert accepts, as a multiple of an even share. "
       "Further tokens skip that expert. Default: set by --gate.",
       {.effect = of_experts,
        .record = {checkpoints, expert_value<&expert_options::capacity>},
        .changeable = true}),
     model_row<&typed::balance>(
       "--balance",
       "Weight of Switch's load-balancing loss. Reported losses leave the "
       "load-balancing loss out. GShard's loss is E^2 times smaller for E experts. "
       "Default: 0.01.",
       {.effect = of_experts,
        .record = {checkpoints, expert_value<&expert_options::balance>},
        .changeable = true}),
     model_row<&typed::gate_noise>(
       "--gate-noise", "Standard deviation of the noise added to the gate's logits.",
       {.effect = of_experts,
        .record = {checkpoints, expert_value<&expert_options::noise>},
        .changeable = true})});
}

tl::expected<model_options, std::string> parse(const typed_model& typed,
                                               std::uint64_t seed) {
  const auto models = names_in(model_names());
  if (std::ranges::find(models, typed.name) == models.end())
    return problem{unknown_name("model", typed.name, models)};
  if (typed.gate != "switch" && typed.gate != "gshard")
    return problem{unknown_name("gate", typed.gate, {"switch", "gshard"})};
  const bool two = typed.gate == "gshard";
  return model_options{.model = typed.name,
                       .layers = typed.layers,
                       .width = typed.width,
                       .heads = typed.heads,
                       .length = typed.length,
                       .words = typed.words,
                       .experts = {.count = typed.experts,
                                   .chosen = typed.top_k.value_or(two ? 2 : 1),
                                   .capacity = typed.capacity.value_or(two ? 1 : 1.25),
                                   .balance = typed.balance.value_or(0.01),
                                   .noise = typed.gate_noise,
                                   .shared = typed.shared_expert,
                                   .seed = seed},
                       .tied = typed.tied};
}

} // namespace troupe
