// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/data_options.hpp"

#include "experiments/options/option_list.hpp"
#include "models/data/data_name.hpp"

namespace troupe {

void add_data_set(option_list& to, typed_data& typed) {
  to.begin_group("Model and data");
  to.add_option(
    "--data", typed.text,
    "Data set: synthetic, text:PATH, tokens:PATH or mnist:FOLDER. PATH is a "
    "file, a folder, or a pattern as train_*.bin, whose files are read in "
    "order of name.\n"
    "synthetic\ttext of a Markov source, or images of ten kinds of shapes\n"
    "text:PATH\tbytes; hidden and packed files of a folder are left out\n"
    "tokens:PATH\ttokens as nanoGPT and llm.c write them; append ,width=32 for "
    "numbers of 32 bits without a header\n"
    "mnist:FOLDER\timages; append ,split=t10k to train on nine tenths of "
    "the t10k images\n"
    ",order=sequential\tappended to text: or tokens: samples in the order of "
    "the files");
  to.add_option("--seed", typed.seed,
                "Seed of the first weights, the data and their order.");
}

void add_data(option_list& to, typed_data& typed) {
  add_data_set(to, typed);
  to.add_option("--batch", typed.batch,
                "Samples of a step. Default: 16 of text, 64 images.");
  to.add_option("--init", typed.init,
                "First weights: a safetensors file, an index of several, or a folder. "
                "The file also sets --data and the model's options if these "
                "are not given; so does a GPT-2's config.json in its folder.");
}

void add_evaluation_data(option_list& to, typed_data& typed) {
  to.begin_group("Model and data");
  to.add_option("--evaluate-data", typed.evaluation,
                "Data set for evaluations, as --data names it. All of a text, or of "
                "tokens, is evaluated, and nothing of --data is held out. Default: the "
                "samples that --data holds out, which are its last tenth.");
}

data_options parse(const typed_data& typed) {
  const auto name = parse_data_name(typed.text);
  return {.text = typed.text,
          .evaluation = typed.evaluation,
          .name = name.kind,
          .path = name.path,
          .batch = typed.batch,
          .init = typed.init,
          .seed = typed.seed,
          .origin = typed.origin};
}

} // namespace troupe
