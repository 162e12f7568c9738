// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/model_options.hpp"

#include "experiments/options/option_list.hpp"

namespace troupe {

void add_model(option_list& to, typed_model& place) {
  to.begin_group("Model and data");
  to.add_option("--model", place.name, "Model: " + model_names() + ".");
  to.add_option("--layers", place.layers,
                "Transformer blocks of gpt and moe, or linear layers of mlp. Default: "
                  + std::to_string(usual_layers) + ".");
  to.add_option("--d-model", place.width,
                "Width of gpt and moe, or hidden units of mlp.");
  to.add_option("--heads", place.heads, "Attention heads of gpt and moe.");
  to.add_option("--seq", place.length, "Tokens of a sample of gpt and moe.");
  to.add_option("--vocab", place.words,
                "Words of gpt and moe. Bytes of a text are words 0 to 255, GPT-2's "
                "tokens 0 to 50256.");
  to.add_flag("--tied", place.tied,
              "Head of gpt and moe that is the embedding's matrix, as GPT-2's.");
}

void add_experts_forwards(option_list& to, typed_model& place,
                          const std::string& top_k) {
  to.begin_group("Experts of moe, in every second block of a gpt");
  to.add_option("--experts", place.experts, "Experts of each such block.");
  to.add_option(top_k, place.top_k, "Experts of a token. Default: the gate's.");
  to.add_flag("--shared-expert", place.shared_expert,
              "Shared expert of each block, which takes every token.");
}

void add_experts(option_list& to, typed_model& place) {
  add_experts_forwards(to, place);
  to.add_option(
    "--gate", place.gate,
    "Preset of --top-k and --capacity: switch (1 and 1.25) or gshard (2 and "
    "1). Capacity 1 is 2S/E of GShard's paper.");
  to.add_option("--capacity", place.capacity,
                "Rows that an expert takes of a microbatch, over its even share of all "
                "tokens' choices. Choices of a full expert are dropped. Default: the "
                "gate's.");
  to.add_option("--balance", place.balance,
                "Weight of Switch's load-balancing loss, E^2 times that of GShard's "
                "paper for E experts. Reported losses leave it out. Default: 0.01.");
  to.add_option("--gate-noise", place.gate_noise,
                "Standard deviation of the noise that the gate's logits get.");
}

tl::expected<model_options, std::string> parse(const typed_model& typed,
                                               std::uint64_t seed) {
  if (typed.gate != "switch" && typed.gate != "gshard")
    return problem{"there is no gate '" + typed.gate
                   + "'; there are switch and gshard"};
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
