// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/inference_options.hpp"

#include "experiments/options/option_list.hpp"
#include "experiments/options/parsing.hpp"
#include "models/short_text.hpp"

namespace troupe {

void add_weights(option_list& to, inference_options& typed) {
  to.begin_group("Weights");
  to.add_option(
    "--weights", typed.weights,
    "Weights: a file of --save, a folder of --checkpoint, or a file, an index or a "
    "folder in the form of --init. A folder of checkpoints stands for the newest "
    "checkpoint; c/batch-8 names that checkpoint. Files of --save and --checkpoint "
    "also set options of model, data and seed that are not given.");
}

void add_scoring(option_list& to, inference_options& typed) {
  to.begin_group("Model and data");
  to.add_option(
    "--samples", typed.samples,
    "Number of held-out samples to evaluate, from the first on. Default: all.");
  to.add_option("--microbatch-size", typed.microbatch,
                "Samples of a microbatch. Default: enough for fast products, at most "
                "16 for text and 64 for images.");
}

void add_writing(option_list& to, inference_options& typed, std::uint64_t& seed) {
  to.begin_group("Text");
  to.add_text("--prompt", typed.prompt,
              "Text that each sequence begins with. Default: a line break.");
  to.add_option("--prompt-tokens", typed.prompt_tokens,
                "Token numbers that each sequence begins with, in place of --prompt. "
                "Sequences are then printed as numbers.")
    ->delimiter(',');
  to.add_option("--tokens", typed.tokens,
                "Tokens to generate for each sequence after the prompt.");
  to.add_option("--temperature", typed.temperature,
                "Divisor of the logits from which a token is drawn. Value 0: always "
                "the most likely token.");
  to.add_option("--top-k", typed.top_k,
                "Number of the most likely tokens from which a token is drawn. Value "
                "0: all tokens.");
  to.add_option("--sequences", typed.sequences,
                "Sequences to generate, each with random numbers of its own.");
  to.add_option("--seed", seed, "Seed of the random numbers.");
  to.begin_group("Devices and precision");
  to.add_option("--device", typed.text_device,
                "Device: only cpu, as text is generated without GPUs.");
}

std::string validation_error(const inference_options& o) {
  if (o.samples && *o.samples < 1)
    return "--samples " + std::to_string(*o.samples)
           + ": at least 1 sample is evaluated";
  constexpr std::int64_t most = 1 << 20, most_tokens = 1'000'000'000;
  if (o.microbatch && (*o.microbatch < 1 || *o.microbatch > most))
    return "--microbatch-size " + std::to_string(*o.microbatch)
           + ": a microbatch has 1 to 1,048,576 samples";
  if (o.prompt && !o.prompt_tokens.empty())
    return "--prompt and --prompt-tokens both give the beginning of a sequence: leave "
           "--prompt or --prompt-tokens out";
  if (o.tokens < 1 || o.tokens > most_tokens)
    return "--tokens " + std::to_string(o.tokens)
           + ": the value is from 1 to 1,000,000,000";
  if (!(o.temperature >= 0 && o.temperature <= 1e6))
    return "--temperature " + short_text(o.temperature)
           + ": the value is from 0 to 1,000,000";
  if (o.top_k < 0)
    return "--top-k " + std::to_string(o.top_k) + ": the value is at least 0";
  if (o.top_k > 0 && o.temperature == 0)
    return "--top-k has no effect at --temperature 0, where no token is drawn: leave "
           "--top-k or --temperature out";
  if (o.sequences < 1 || o.sequences > most)
    return "--sequences " + std::to_string(o.sequences)
           + ": the value is from 1 to 1,048,576";
  if (o.text_device != "cpu")
    return "--device " + o.text_device
           + ": generate runs only on the CPU, by --device cpu or without --device";
  return {};
}

} // namespace troupe
