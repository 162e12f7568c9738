#include "experiments/options/data_options.hpp"

#include "experiments/options/option_list.hpp"

namespace troupe {

void add_data_set(option_list& to, typed_data& place) {
  to.begin_group("Model and data");
  to.add_option("--data", place.text,
                "Data set: synthetic, text:PATH, tokens:FILE or mnist:FOLDER. Texts "
                "are files or folders, read as bytes. Tokens are as nanoGPT and llm.c "
                "write them. Both take ,order=sequential behind. Synthetic text is a "
                "Markov source, and synthetic images are ten kinds of shapes.");
  to.add_option("--seed", place.seed,
                "Seed of the first weights, the data and their order.");
}

void add_data(option_list& to, typed_data& place) {
  add_data_set(to, place);
  to.add_option("--batch", place.batch,
                "Samples of a step. Default: 16 of text, 64 images.");
  to.add_option("--init", place.init, "Safetensors file with the first weights.");
}

data_options parse(const typed_data& typed) {
  data_options result{.text = typed.text,
                      .name = typed.text.substr(0, typed.text.find(':')),
                      .path = {},
                      .batch = typed.batch,
                      .init = typed.init,
                      .seed = typed.seed};
  if (const auto begin = result.name.size() + 1; begin < typed.text.size())
    result.path = typed.text.substr(begin, typed.text.rfind(",order=") - begin);
  return result;
}

} // namespace troupe
