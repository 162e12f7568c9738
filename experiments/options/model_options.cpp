// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/model_options.hpp"

#include "experiments/options/option_list.hpp"
#include "experiments/options/suggestion.hpp"

#include <algorithm>

namespace troupe {

void add_model(option_list& to, typed_model& typed) {
  to.begin_group("Model and data");
  to.add_option("--model", typed.name, "Model: " + model_names() + ".");
  to.add_option("--layers", typed.layers,
                "Blocks of gpt and moe, or linear layers of mlp. Default: "
                  + std::to_string(usual_layers) + ".");
  to.add_option("--d-model", typed.width,
                "Width of gpt and moe, or hidden units of mlp.");
  to.add_option("--heads", typed.heads, "Attention heads of gpt and moe.");
  to.add_option("--seq", typed.length, "Tokens of a sample of gpt and moe.");
  to.add_option("--vocab", typed.words,
                "Size of the vocabulary of gpt and moe. A text's bytes are tokens 0 to "
                "255; GPT-2's tokens are 0 to 50256.");
  to.add_flag(
    "--tied", typed.tied,
    "The head and the embedding of gpt and moe use one matrix, like those of GPT-2.");
}

void add_experts_forwards(option_list& to, typed_model& typed,
                          const std::string& top_k) {
  to.begin_group("Experts of moe, in every second block of a gpt");
  to.add_option("--experts", typed.experts, "Experts of a block that has experts.");
  to.add_option(top_k, typed.top_k,
                "Experts that each token is sent to. Default: set by --gate.");
  to.add_flag("--shared-expert", typed.shared_expert,
              "A block with experts has one more expert, which receives every token.");
}

void add_experts(option_list& to, typed_model& typed) {
  add_experts_forwards(to, typed);
  to.add_option("--gate", typed.gate,
                "Gate, which sets the defaults of --top-k and --capacity.\n"
                "switch\t--top-k 1, --capacity 1.25\n"
                "gshard\t--top-k 2, --capacity 1. An expert then accepts 2 * tokens / "
                "experts tokens, as in GShard's paper");
  to.add_option("--capacity", typed.capacity,
                "Tokens of a microbatch that an expert accepts, as a multiple of an "
                "even share. Further tokens skip that expert. Default: set by --gate.");
  to.add_option(
    "--balance", typed.balance,
    "Weight of Switch's load-balancing loss. Reported losses leave the load-balancing "
    "loss out. GShard's loss is E^2 times smaller for E experts. Default: 0.01.");
  to.add_option("--gate-noise", typed.gate_noise,
                "Standard deviation of the noise added to the gate's logits.");
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
                       .layers = typed.layers.value_or(usual_layers),
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
