// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/inference_options.hpp"
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"
#include "models/short_text.hpp"

#include <algorithm>

namespace troupe {

option_rows evaluation_rows() {
  constexpr auto group = &typed_options::evaluation;
  return under(
    "Evaluation", programs::keeps_training,
    {row<group, &evaluation_options::every>(
       "--evaluate-every",
       "Steps from one evaluation to the next. Value 0: only an evaluation at the end.",
       {.effect = {[](run_view r) { return r.o.evaluation.samples != 0; },
                   "has no effect, as --evaluate-samples is 0: give --evaluate-samples "
                   "above 0, or leave % out"}}),
     row<group, &evaluation_options::samples>("--evaluate-samples",
                                              "Held-out samples of an evaluation."),
     row<group, &evaluation_options::verify>(
       "--verify",
       "Steps that are computed before each run and compared with a loop without "
       "actors. The results contain the verdict. Value 0: no check."),
     row<group, &evaluation_options::target>(
       "--target-loss",
       "Training loss in nats. The table says after how many samples and seconds the "
       "mean loss of the last 8 batches was at most that loss.")});
}

option_rows weights_rows() {
  return under(
    "Weights", programs::all,
    {row<&typed_options::inference, &inference_options::weights>(
      "--weights",
      "Weights: a file of --save, a folder of --checkpoint, or a file, an index or a "
      "folder in the form of --init. A folder of checkpoints stands for the newest "
      "checkpoint; c/batch-8 names that checkpoint. Files of --save and --checkpoint "
      "also set options of model, data and seed that are not given.")});
}

option_rows text_rows() {
  constexpr auto group = &typed_options::inference;
  using typed = inference_options;
  return joined(
    under(
      "Text", programs::writes,
      {row<group, &typed::prompt>(
         "--prompt", "Text that each sequence begins with. Default: a line break."),
       row<group, &typed::prompt_tokens>(
         "--prompt-tokens",
         "Token numbers that each sequence begins with, in place of --prompt. "
         "Sequences are then printed as numbers.",
         {.commas = true}),
       row<group, &typed::tokens>(
         "--tokens", "Tokens to generate for each sequence after the prompt."),
       row<group, &typed::temperature>("--temperature",
                                       "Divisor of the logits from which a token is "
                                       "drawn. Value 0: always the most likely token."),
       row<group, &typed::top_k>("--top-k",
                                 "Number of the most likely tokens from which a token "
                                 "is drawn. Value 0: all tokens."),
       row<group, &typed::sequences>(
         "--sequences", "Sequences to generate, each with random numbers of its own."),
       row<&typed_options::data, &data_options::seed>("--seed",
                                                      "Seed of the random numbers.")}),
    under("Devices and precision", programs::writes,
          {row<group, &typed::text_device>(
            "--device", "Device: only cpu, as text is generated without GPUs.")}));
}

std::string validation_error(const evaluation_options& o) {
  for (const auto& [option, value] :
       {std::pair{"--evaluate-every ", std::int64_t{o.every}},
        {"--evaluate-samples ", std::int64_t{o.samples}},
        {"--verify ", std::int64_t{o.verify}}})
    if (value < 0)
      return option + std::to_string(value) + ": the value is at least 0";
  if (o.target && !(*o.target > 0))
    return "--target-loss " + short_text(*o.target) + ": a loss to reach is above 0";
  return {};
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
