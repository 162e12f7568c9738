// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/data_options.hpp"
#include "experiments/options/option_row.hpp"
#include "models/data/data_name.hpp"

namespace troupe {

option_rows data_rows() {
  constexpr auto group = &typed_options::data;
  const auto reads_data = [](const program_info& p) { return p.trains && !p.writes; };
  const auto has_evaluation_data = [](const program_info& p) {
    return p.evaluates || programs::keeps_training(p);
  };
  return under(
    "Model and data", programs::learns,
    {row<group, &data_options::text>(
       "--data",
       "Data: synthetic, text:PATH, tokens:PATH or mnist:FOLDER. PATH is a file, a "
       "folder, or a pattern like train_*.bin. Its files are read in order of name.\n"
       "synthetic\ttext of a Markov source, or images of ten kinds of shapes\n"
       "text:PATH\tbytes of text, without the hidden and packed files of a folder\n"
       "tokens:PATH\ttokens in files of nanoGPT and llm.c. Append ,width=32 for "
       "numbers of 32 bits without a header\n"
       "mnist:FOLDER\timages of MNIST. Append ,split=t10k to train on nine tenths of "
       "the t10k images\n"
       ",order=sequential\tsamples in the order of the files; follows the path of text "
       "or tokens",
       {.has = reads_data,
        .effect = {[](run_view r) {
                     return r.o.inference.weights.empty()
                            || r.o.data.evaluation.empty();
                   },
                   "has no effect, as --evaluate-data names the data to evaluate: "
                   "leave --data or --evaluate-data out"},
        .record = {recorded_in::init, value_of<&options::data, &data_options::text>,
                   [](run_view r) { return r.o.own.data == nullptr; }},
        .changeable = true}),
     row<group, &data_options::seed>(
       "--seed", "Seed of initial weights, data and gates' noise.",
       {.has = reads_data,
        .record = {recorded_in::weights, value_of<&options::data, &data_options::seed>},
        .changeable = true}),
     row<group, &data_options::data_seed>(
       "--data-seed", "Seed of synthetic data and data order. Default: --seed.",
       {.has = reads_data,
        .record = {recorded_in::weights,
                   [](run_view r) { return record_text(r.o.data.seed_of_data()); },
                   [](run_view r) { return r.o.data.data_seed.has_value(); }},
        .changeable = true}),
     row<group, &data_options::init_seed>(
       "--init-seed", "Seed of initial weights. Default: --seed.",
       {.effect = {[](run_view r) {
                     return r.o.data.init.empty() && r.o.checkpoint.resume.empty();
                   },
                   "draws initial weights, and this run reads weights: leave % out"},
        .record = {recorded_in::checkpoints,
                   [](run_view r) { return record_text(r.o.data.seed_of_weights()); },
                   [](run_view r) { return r.o.data.init_seed.has_value(); }}}),
     row<group, &data_options::batch>(
       "--batch", "Samples of a step. Default: 16 for text and tokens, 64 for images.",
       {.record = {recorded_in::checkpoints,
                   [](run_view r) { return record_text(r.training->work->batch); }}}),
     row<group, &data_options::init>(
       "--init", "Initial weights: a safetensors file, an index or a folder. Weights "
                 "also set --data and model options that are not given, as does a "
                 "config.json beside the weights."),
     row<group, &data_options::evaluation>(
       "--evaluate-data",
       "Data set for evaluations, in the form of --data. All of it is held out. "
       "Default: the samples that --data holds out.",
       {.has = has_evaluation_data,
        .record = {recorded_in::init,
                   value_of<&options::data, &data_options::evaluation>,
                   [](run_view r) { return !r.o.data.evaluation.empty(); }}}),
     row<&typed_options::inference, &inference_options::samples>(
       "--samples",
       "Number of held-out samples to evaluate, from the first on. Default: all.",
       {.has = programs::evaluates}),
     row<&typed_options::inference, &inference_options::microbatch>(
       "--microbatch-size",
       "Samples of a microbatch. Default: enough for fast products, at most 16 for "
       "text and 64 for images.",
       {.has = programs::evaluates})});
}

data_options parse(data_options typed) {
  auto name = parse_data_name(typed.text);
  typed.name = std::move(name.kind);
  typed.path = std::move(name.path);
  return typed;
}

} // namespace troupe
