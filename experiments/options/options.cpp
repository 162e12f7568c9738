#include "experiments/options/options.hpp"

#include "experiments/options/option_list.hpp"
#include "messaging/collective_catalog.hpp"
#include "messaging/replica_exchange.hpp"
#include "models/network.hpp"
#include "schedules/catalog/catalog.hpp"

namespace troupe {

namespace {

void add_model(option_list& app, options& o) {
  const auto group = "What is trained";
  app.add_option("--model", o.model, model_names())->group(group);
  app
    .add_option("--layers", o.layers,
                "transformer blocks of gpt and moe, linear layers of mlp; 4 unless "
                "given")
    ->group(group);
  app.add_option("--d-model", o.width, "width of gpt and moe, hidden units of mlp")
    ->group(group);
  app.add_option("--heads", o.heads, "attention heads of gpt and moe")->group(group);
  app.add_option("--seq", o.length, "tokens a sample of gpt and moe")->group(group);
  app
    .add_option("--vocab", o.words,
                "words of gpt and moe; bytes of a text are words 0 to 255, GPT-2's "
                "tokens 0 to 50256")
    ->group(group);
  app
    .add_flag("--tied", o.tied,
              "the head of gpt and moe is the embedding's matrix, as GPT-2's")
    ->group(group);
  app
    .add_option(
      "--data", o.data,
      "synthetic; text:FILE-or-folder, as bytes; tokens:FILE, as nanoGPT and llm.c "
      "write them; either of the two with ,order=sequential behind; mnist:FOLDER")
    ->group(group);
  app
    .add_option("--batch", o.batch,
                "samples a step; 16 of text, 64 images unless given")
    ->group(group);
  app.add_option("--init", o.init, "safetensors file to begin with")->group(group);
  app.add_option("--seed", o.seed, "of first weights, data and their order")
    ->group(group);
}

void add_experts(option_list& app, options& o) {
  const auto group = "Experts of moe, in every second block of a gpt";
  app.add_option("--experts", o.experts, "in each such block")->group(group);
  app
    .add_option("--gate", o.gate,
                "switch: top-k 1, capacity 1.25; gshard: top-k 2, capacity 1, which is "
                "its paper's 2S/E; balance 0.01 of both")
    ->group(group);
  app.add_option("--top-k", o.top_k, "experts a token")->group(group);
  app
    .add_option("--capacity", o.capacity,
                "of an expert, over its even share of the top-k choices of all a "
                "microbatch's tokens; those that find it full are dropped")
    ->group(group);
  app
    .add_option("--balance", o.balance,
                "weight of the load-balancing loss of Switch, E^2 times that of "
                "GShard's paper for E experts; what is told as loss leaves it out")
    ->group(group);
  app
    .add_option("--gate-noise", o.gate_noise,
                "standard deviation of what is added to the gate's logits")
    ->group(group);
  app.add_flag("--shared-expert", o.shared_expert, "one more, which all tokens have")
    ->group(group);
}

void add_schedule(option_list& app, options& o, const program_about& about) {
  const auto group = "How it is cut and scheduled";
  const bool trains = about.trains;
  app.add_option("--microbatches", o.microbatches, "pieces of a batch")->group(group);
  if (about.measures)
    return;
  app
    .add_option("--schedules,--schedule", o.schedules,
                "naive, gpipe, 1f1b, chimera, pipedream, 2bw, ampnet, or all that fit "
                "the sizes: all; with parameters: ampnet:max_active_keys=8"
                  + std::string{trains ? ",lr=0.01" : ""})
    ->group(group);
  app.add_option("--stages", o.stages, "pieces of the network, one a rank")
    ->group(group);
  app
    .add_option("--mesh", o.mesh,
                "ranks as data=2,pipe=4,tensor=2: data replicas of the pipeline, each "
                "with a share of every batch, its stages (as --stages), and the "
                "shards of every layer; expert=2 spreads the experts of moe over so "
                "many of the data replicas")
    ->group(group);
  app
    .add_flag("--sequence-parallel", o.sequence_parallel,
              "tensor shards also share out the positions of each sequence where they "
              "would all compute the same: in norms, residuals and between stages")
    ->group(group);
  if (about.names_exchange)
    app
      .add_option("--exchange", o.exchange,
                  "how data replicas keep one model: " + exchange_names())
      ->group(group);
  app.add_option("--steps", o.steps, "batches")->group(group);
  if (!trains)
    return;
  app.add_option("--epochs", o.epochs, "passes over the data, in place of --steps")
    ->group(group);
  app
    .add_option("--split", o.split,
                "blocks or layers a stage, as 2,2,1,1; by estimated cost unless given")
    ->group(group);
}

void add_optimizer(option_list& app, options& o) {
  const auto group = "How it learns";
  app.add_option("--optimizer", o.optimizer, "sgd or adamw")->group(group);
  app
    .add_option("--lr", o.rate,
                "learning rate; 0.001 of adamw, 0.1 of sgd unless given")
    ->group(group);
  app
    .add_option("--lr-schedule", o.rate_schedule,
                "constant or cosine; warmup=SAMPLES, floor=FRACTION behind commas. A "
                "warm-up counts an update's own samples, so that the first has a rate "
                "above 0 (Hugging Face's begins at 0)")
    ->group(group);
  app.add_option("--momentum", o.momentum, "of sgd")->group(group);
  app.add_option("--betas", o.betas, "of adamw")->group(group);
  app.add_option("--eps", o.epsilon, "of adamw")->group(group);
  app
    .add_option("--weight-decay", o.weight_decay,
                "0.01 of adamw, 0 of sgd unless given")
    ->group(group);
  app.add_option("--decay", o.decay, "all parameters, or only matrices")->group(group);
  app
    .add_option(
      "--clip", o.clip,
      "largest norm of a gradient, over all stages; 0: any. A schedule may say "
      "clip=stage")
    ->group(group);
}

void add_machines(option_list& app, options& o, const char* group) {
  app
    .add_option(
      "--machines", o.machines,
      "in virtual time: ranks=8,latency=0.05,bandwidth=1e9 puts every 8 ranks "
      "on one machine, whose port to the others they share: milliseconds and "
      "bytes a second between machines; links=FILE behind it for pairs that "
      "differ, a line as 0,1,40,2.5e7")
    ->group(group);
}

void add_run(option_list& app, options& o, const program_about& about) {
  const auto group = "Where and when it runs";
  if (about.trains)
    app.add_option("--threads", o.threads, "of the CPU; its cores unless given")
      ->group(group);
  if (about.measures)
    return;
  if (about.trains) {
    app.add_option("--clock", o.clock, "real or virtual")->group(group);
    app
      .add_option("--stall-timeout", o.stall_timeout,
                  "seconds without any action until it is told who is at what, and a "
                  "run is given up; but not while an action is under way that is known "
                  "to take as long: up to 20 times as long as any of its kind did, or "
                  "for the first ones what 0.1 GFLOP/s would take")
      ->group(group);
  }
  app
    .add_option(
      "--cost", o.cost,
      "in virtual time: F=1,B=2 in milliseconds, F=1/2/1/1 a stage each; I and "
      "W (B/2 each), U, latency; bandwidth in bytes a second, bytes a message; "
      "bytes of a stage's gradient and in how many buckets replicas exchange it; "
      "bytes that tensor shards sum and how many sums a forward or backward has; "
      "experts, the bytes of rows that a stage sends them; "
      "replica=1/2.5, how many times as long each data replica takes")
    ->group(group);
  add_machines(app, o, group);
}

void add_collectives(option_list& app, options& o) {
  const auto group = "What is exchanged";
  app
    .add_option("--ranks", o.ranks, "how many take part, 1 to 1,024; several as 2,4,8")
    ->delimiter(',')
    ->group(group);
  app.add_option("--values", o.values, "floats in each rank's array")->group(group);
  app
    .add_option("--bytes", o.bytes,
                "the same in bytes, four a value; 1048576 unless given")
    ->group(group);
  app
    .add_option("--operation,--operations", o.operations,
                operation_names() + "; all unless given")
    ->delimiter(',')
    ->group(group);
  app
    .add_option("--algorithm,--algorithms", o.algorithms,
                algorithm_names() + "; all unless given")
    ->delimiter(',')
    ->group(group);
  app.add_option("--latency", o.latency, "of a message, in milliseconds")->group(group);
  app
    .add_option("--bandwidth", o.bandwidth,
                "of each rank's port, in bytes a second; 0: bytes take no time")
    ->group(group);
  add_machines(app, o, group);
}

void add_output(option_list& app, options& o, const program_about& about) {
  const auto group = "What is told";
  if (about.trains && about.keeps) {
    app.add_option("--evaluate-every", o.evaluate_every, "steps; 0: at the end")
      ->group(group);
    app.add_option("--evaluate-samples", o.evaluate_samples, "held-out samples to use")
      ->group(group);
    app
      .add_option("--save", o.save,
                  "safetensors file for the weights in the end; beside a gpt's "
                  "model.safetensors comes a config.json for Hugging Face")
      ->group(group);
  }
  if (about.keeps || about.measures || about.exchanges || about.tells)
    app.add_option("--json", o.json, "file for the results; - for standard output")
      ->group(group);
  if (about.keeps)
    app.add_option("--report", o.report, "folder for results.json and traces")
      ->group(group);
  app.add_flag("--quiet", o.quiet, "only errors, and what --json - says")->group(group);
  if (about.draws)
    app.add_flag("--print", o.print, "draw the timeline as text, a row a rank")
      ->group(group);
  if (about.has_all)
    app.add_flag("--all", o.all, "the whole catalog on tiny models, in both clocks")
      ->group(group);
}

/// The schedules with their parameters and the exchanges, for the end of --help.
std::string about_schedules() {
  std::string text = "Schedules:\n";
  for (const auto& entry : catalog()) {
    text += "  " + std::string{entry.name} + ": " + std::string{entry.summary} + "\n";
    for (const auto& p : entry.parameters)
      text += "    " + std::string{p.name} + " (" + std::to_string(p.initial)
              + "): " + std::string{p.meaning} + "\n";
  }
  text += "\nExchanges:\n";
  for (const auto& e : exchange_catalog())
    text += "  " + std::string{e.name} + ": " + std::string{e.idea} + "\n";
  return text;
}

/// The same of collectives.
std::string about_collectives() {
  std::string text = "Operations, and the algorithms they go by:\n";
  for (const auto& order : collective_catalog())
    text += "  " + std::string{name_of(order.what)} + " " + std::string{order.name}
            + ": " + std::string{order.idea} + "\n";
  return text;
}

} // namespace

std::string add_options(option_list& app, options& o, const program_about& about) {
  if (about.exchanges) {
    add_collectives(app, o);
  } else {
    if (about.trains) {
      add_model(app, o);
      add_experts(app, o);
    }
    add_schedule(app, o, about);
    if (about.trains)
      add_optimizer(app, o);
    add_run(app, o, about);
  }
  add_output(app, o, about);
  return about.exchanges ? about_collectives() : about_schedules();
}

} // namespace troupe
