// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/data_options.hpp"

#include "experiments/options/option_list.hpp"
#include "models/data/data_name.hpp"

namespace troupe {

void add_data_set(option_list& to, typed_data& typed) {
  to.begin_group("Model and data");
  to.add_option(
    "--data", typed.text,
    "Data: synthetic, text:PATH, tokens:PATH or mnist:FOLDER. PATH is a file, a "
    "folder, or a pattern like train_*.bin. Its files are read in order of name.\n"
    "synthetic\ttext of a Markov source, or images of ten kinds of shapes\n"
    "text:PATH\tbytes of text, without the hidden and packed files of a folder\n"
    "tokens:PATH\ttokens in files of nanoGPT and llm.c. Append ,width=32 for numbers "
    "of 32 bits without a header\n"
    "mnist:FOLDER\timages of MNIST. Append ,split=t10k to train on nine tenths of the "
    "t10k images\n"
    ",order=sequential\tsamples in the order of the files; follows the path of text or "
    "tokens");
  to.add_option("--seed", typed.seed,
                "Seed of initial weights, synthetic data and data order.");
}

void add_data(option_list& to, typed_data& typed) {
  add_data_set(to, typed);
  to.add_option("--batch", typed.batch,
                "Samples of a step. Default: 16 for text and tokens, 64 for images.");
  to.add_option("--init", typed.init,
                "Initial weights: a safetensors file, an index or a folder. Weights "
                "also set --data and model options that are not given, as does a "
                "config.json beside the weights.");
}

void add_evaluation_data(option_list& to, typed_data& typed) {
  to.begin_group("Model and data");
  to.add_option("--evaluate-data", typed.evaluation,
                "Data set for evaluations, in the form of --data. All of it is held "
                "out. Default: the samples that --data holds out.");
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
