// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/data_options.hpp"

#include "experiments/options/option_list.hpp"
#include "models/data/data_name.hpp"

namespace troupe {

void add_data_set(option_list& to, typed_data& place) {
  to.begin_group("Model and data");
  to.add_option("--data", place.text,
                "Data set: synthetic, text:PATH, tokens:FILE or mnist:FOLDER. Texts "
                "are files or folders, read as bytes. Hidden and packed files of a "
                "folder are left out. Tokens are as nanoGPT and llm.c write them. Both "
                "take ,order=sequential behind, and tokens ,width=32 for numbers of 32 "
                "bits without a header. Images take ,split=t10k, which trains on nine "
                "tenths of the t10k images. Synthetic text is a Markov source, and "
                "synthetic images are ten kinds of shapes.");
  to.add_option("--seed", place.seed,
                "Seed of the first weights, the data and their order.");
}

void add_data(option_list& to, typed_data& place) {
  add_data_set(to, place);
  to.add_option("--batch", place.batch,
                "Samples of a step. Default: 16 of text, 64 images.");
  to.add_option("--init", place.init,
                "Safetensors file with the first weights. Options of the model, and "
                "--data, that are left out are read from it, or from a GPT-2's "
                "config.json beside it.");
}

data_options parse(const typed_data& typed) {
  const auto name = parse_data_name(typed.text);
  return {.text = typed.text,
          .name = name.kind,
          .path = name.path,
          .batch = typed.batch,
          .init = typed.init,
          .seed = typed.seed,
          .origin = typed.origin};
}

} // namespace troupe
