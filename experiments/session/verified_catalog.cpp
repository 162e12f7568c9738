#include "experiments/session/verified_catalog.hpp"

#include "experiments/options/schedule_options.hpp"
#include "experiments/options/setup.hpp"
#include "schedules/catalog/catalog.hpp"

#include <array>
#include <string>
#include <utility>

namespace troupe {

namespace {

/// How a run learns. Clipping by the network's norm is for schedules that have one.
struct way_to_learn {
  const char* optimizer;
  double rate;
  double momentum = 0;
  const char* betas = "0.9,0.999";
  double epsilon = 1e-8;
  double weight_decay = 0;
  const char* decay = "all";
  const char* clip = "0";
  bool clips_by_stage = false;
  bool cosine = false;
  bool warms_up = false;
  const char* floor = "0";
};

constexpr std::array ways_to_learn{
  way_to_learn{.optimizer = "adamw", .rate = 1e-3, .weight_decay = 0.01},
  way_to_learn{.optimizer = "sgd",
               .rate = 0.02,
               .momentum = 0.9,
               .weight_decay = 0.1,
               .decay = "matrices",
               .cosine = true,
               .warms_up = true,
               .floor = "0.1"},
  way_to_learn{.optimizer = "adamw",
               .rate = 1e-3,
               .betas = "0.8,0.95",
               .epsilon = 1e-4,
               .weight_decay = 0.1,
               .clip = "0.1",
               .cosine = true},
  way_to_learn{.optimizer = "sgd", .rate = 0.1, .weight_decay = 0.05},
  way_to_learn{.optimizer = "sgd",
               .rate = 0.02,
               .momentum = 0.5,
               .clip = "0.05",
               .clips_by_stage = true,
               .warms_up = true},
  way_to_learn{.optimizer = "adamw",
               .rate = 1e-3,
               .weight_decay = 0.3,
               .decay = "matrices",
               .clip = "0.2",
               .warms_up = true},
};

/// Whether updates see no norm but their stage's.
bool has_norm_of_stage_alone(const std::string& text) {
  const auto sch = find_schedule(text.substr(0, text.find(':')));
  return sch && (sch->local_rule() || sch->update_every != 0);
}

/// The names of all schedules there are.
std::string all_schedules() {
  std::string result;
  for (const auto& entry : catalog())
    result += (result.empty() ? "" : ",") + std::string{entry.name};
  return result;
}

/// Says clip=stage of schedules that have no other norm, or of all.
std::string with_clip(const std::string& schedules, bool by_stage) {
  std::string result;
  for (auto text : split_schedules(schedules)) {
    if (by_stage || has_norm_of_stage_alone(text))
      text +=
        (text.find(':') == std::string::npos ? ":" : ",") + std::string{"clip=stage"};
    result += (result.empty() ? "" : ",") + text;
  }
  return result;
}

/// Warm-ups end within a batch.
void learn(options& o, const way_to_learn& how) {
  o.optimizer = how.optimizer;
  o.rate = how.rate;
  o.momentum = how.momentum;
  o.betas = how.betas;
  o.epsilon = how.epsilon;
  o.weight_decay = how.weight_decay;
  o.decay = how.decay;
  o.clip = how.clip;
  if (o.clip != "0")
    o.schedules.front() = with_clip(o.schedules.front(), how.clips_by_stage);
  o.rate_schedule = how.cosine ? "cosine" : "constant";
  if (how.warms_up)
    o.rate_schedule += ",warmup=" + std::to_string(*o.batch + *o.batch / 2 + 1);
  if (how.cosine)
    o.rate_schedule += ",floor=" + std::string{how.floor};
}

/// Every mesh of data, pipe and tensor of at most 16 ranks, odd ones included, under an
/// exchange each by turns.
void add_tensor_meshes(std::vector<options>& to, const options& asked) {
  const std::array exchanges{"ring", "zero1", "zero2", "zero3", "tree"};
  std::size_t turn = 0;
  for (const char* clock : {"virtual", "real"})
    for (const int data : {1, 2, 3, 4})
      for (const int pipe : {1, 2, 3, 4})
        for (const int tensor : {2, 3, 4}) {
          if (data * pipe * tensor > 16)
            continue;
          auto o = asked;
          o.layers = 4;
          o.width = 24;
          o.heads = 12;
          o.length = 6;
          o.words = 19;
          const bool real = std::string{clock} == "real";
          o.schedules = {std::string{real ? "1f1b" : "naive,gpipe,1f1b,2bw"}
                         + (pipe % 2 == 0 ? ",chimera" : "")};
          o.mesh = "data=" + std::to_string(data) + ",pipe=" + std::to_string(pipe)
                   + ",tensor=" + std::to_string(tensor);
          o.exchange = exchanges[turn++ % exchanges.size()];
          o.microbatches = 4 * data;
          o.batch = 4 * data + 1;
          o.steps =
            data * pipe * tensor == 4 ? 40 : 10; // rounding would grow with them
          o.clock = clock;
          o.cost = o.clock == "virtual" ? "F=1,B=2,U=0.5,latency=0.1" : "";
          o.threads = 2;
          to.push_back(o);
          o.schedules = {
            "pipedream,pipedream:vertical_sync=on,pipedream:update_every=3"};
          if (!real)
            to.push_back(std::move(o));
        }
}

/// The same meshes by sequence, without pipedream, and in real time in shorter runs.
void add_sequence_meshes(std::vector<options>& to, const options& asked) {
  std::vector<options> all;
  add_tensor_meshes(all, asked);
  for (auto& o : all) {
    if (o.schedules.front().starts_with("pipedream"))
      continue;
    o.sequence_parallel = true;
    o.length = 12; // a multiple of every number of shards
    o.steps = o.clock == "virtual" ? 10 : 2;
    to.push_back(std::move(o));
  }
}

/// Experts on 1, 2 and 4 ranks, by both gates.
void add_expert_meshes(std::vector<options>& to, const options& asked) {
  const std::array exchanges{"zero1", "ring",   "zero1",  "ring",
                             "tree",  "server", "halving"};
  std::size_t turn = 0;
  for (const char* clock : {"virtual", "real"})
    for (const char* gate : {"switch", "gshard"})
      for (const int pipe : {1, 2})
        for (const auto& [data, expert] :
             {std::pair{1, 1}, {2, 1}, {3, 1}, {4, 1}, {2, 2}, {4, 2}, {4, 4}}) {
          auto o = asked;
          o.model = "moe";
          o.layers = 4;
          o.width = 16;
          o.heads = 2;
          o.length = 6;
          o.words = 19;
          o.experts = 4;
          o.gate = gate;
          o.capacity = 1;
          o.gate_noise = 0.1;
          o.shared_expert = pipe == 2;
          o.schedules = {"naive,gpipe,1f1b,2bw,pipedream:update_every=2"
                         + std::string{pipe == 2 ? ",chimera" : ""}};
          o.mesh = "data=" + std::to_string(data) + ",pipe=" + std::to_string(pipe)
                   + ",expert=" + std::to_string(expert);
          o.exchange = expert == 1 ? exchanges[turn++ % exchanges.size()] : "ring";
          o.microbatches = 4 * data;
          o.batch = 4 * data + 1;
          o.steps = 10;
          o.clock = clock;
          o.threads = 2;
          to.push_back(std::move(o));
        }
}

/// Exchanges whose updates are of one data replica each; in virtual time one of them is
/// slower than the others.
void add_exchanges_apart(std::vector<options>& to, const options& asked) {
  for (const char* exchange :
       {"server:async", "server:staleness=1", "server:staleness=0", "hogwild"})
    for (const char* clock : {"virtual", "real"})
      for (const int data : {2, 4}) {
        auto o = asked;
        const bool real = std::string{clock} == "real";
        if (real && std::string{exchange} == "hogwild")
          continue;
        o.layers = 4;
        o.width = 16;
        o.heads = 2;
        o.length = 8;
        o.words = 19;
        o.schedules = {"gpipe,1f1b,chimera,pipedream:update_every=3,2bw"};
        if (std::string{exchange}.find('=') == std::string::npos)
          o.schedules.front() += ",ampnet:min_update_frequency=3";
        o.mesh = data == 2 ? "data=2,pipe=2" : "data=4,pipe=2";
        o.exchange = exchange;
        o.microbatches = data * 4;
        o.batch = data * 4 + 1;
        o.steps = 4;
        o.clock = clock;
        const std::string slow = data == 2 ? "1/2.5" : "1/1.2/1/3";
        o.cost = real ? "" : "F=1,B=2,U=0.5,latency=0.1,replica=" + slow;
        o.threads = 2;
        to.push_back(std::move(o));
      }
}

} // namespace

std::vector<options> verified_catalog(const options& asked) {
  std::vector<options> result;
  const auto add = [&](const std::string& model, const std::string& schedules,
                       int stages, int microbatches, std::int64_t batch,
                       const std::string& split = "") {
    for (const char* clock : {"virtual", "real"})
      for (const int threads : {1, 2}) {
        if (threads == 2 && std::string{clock} == "virtual")
          continue;
        auto o = asked;
        o.model = model;
        o.layers = 8;
        o.width = 16;
        o.heads = 2;
        o.length = 8;
        o.words = 19;
        o.schedules = {schedules};
        o.stages = stages;
        o.microbatches = microbatches;
        o.batch = batch;
        o.split = split;
        o.steps = 4;
        o.clock = clock;
        if (o.clock == "virtual") // where updates take no time, papers say the rest
          o.cost = microbatches % 3 == 0 ? "F=1,B=2,U=0.5" : "F=1,B=2";
        o.threads = threads;
        result.push_back(std::move(o));
      }
  };
  const auto all = all_schedules();
  const std::string one_way = "naive,gpipe,1f1b,pipedream,pipedream:vertical_sync=on,"
                              "pipedream:update_every=3,ampnet,"
                              "ampnet:max_active_keys=6,min_update_frequency=2";
  for (const int stages : {1, 2, 3, 5, 8})
    for (const int microbatches : {1, 3, 8, 32})
      add("gpt", one_way, stages, microbatches, microbatches + 2);
  for (const int stages : {1, 2, 4, 8})
    add("gpt", "2bw", stages, 8, 19);
  for (const int stages : {2, 4, 8})
    for (const int microbatches : {2, 8, 12})
      add("gpt", "chimera", stages, microbatches, microbatches + 1);
  add("gpt", all, 4, 8, 11, "3,1,3,1");
  for (const char* exchange :
       {"naive", "tree", "ring", "halving", "server", "zero1", "zero2", "zero3"})
    for (const int data : {2, 3, 4})
      for (const int stages : {1, 2, 4}) {
        if (stages != 2 && std::string{exchange} != "ring")
          continue;
        const auto begin = result.size();
        add("gpt",
            "naive,gpipe,1f1b,pipedream,pipedream:update_every=3,2bw"
              + std::string{stages % 2 == 0 ? ",chimera" : ""},
            stages, data * 4, data * 4 + 1);
        for (auto o = begin; o < result.size(); ++o) {
          result[o].mesh = "data=" + std::to_string(data);
          result[o].exchange = exchange;
        }
      }
  add_exchanges_apart(result, asked);
  add_tensor_meshes(result, asked);
  add_sequence_meshes(result, asked);
  add_expert_meshes(result, asked);
  add("lenet", all, 4, 4, 8);
  add("mlp", all, 4, 4, 8);
  for (std::size_t i = 0; i < result.size(); ++i)
    learn(result[i],
          ways_to_learn[(i + i / ways_to_learn.size()) % ways_to_learn.size()]);
  return result;
}

} // namespace troupe
