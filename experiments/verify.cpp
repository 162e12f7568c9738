// verify: proves schedules right: the plain loop, the replay of the record, the formula

#include "actors/proof/proof.hpp"
#include "experiments/support/session.hpp"
#include "schedules/catalog.hpp"

#include <array>
#include <iostream>

using namespace troupe;

namespace {

/// Whether a second run gives the same bits.
proof again(const run_plan& plan, const run_result& first) {
  const auto second = perform(plan);
  const auto apart =
    between(*plan.work, {first.loss, first.parameters, first.gradients},
            {second.loss, second.parameters, second.gradients});
  return judged("again", apart.none() ? "" : apart.text(), apart.text());
}

/// Runs one plan and prints its proofs; false if one does not hold.
bool holds(const std::string& what, run_plan plan, bool quiet) {
  keep_for_proofs(plan);
  plan.interrupted = &interruption();
  const auto result = perform(plan);
  if (result.how == ending::interrupted)
    return false;
  if (result.how == ending::failed) {
    std::cerr << "verify: " << what << ": " << result.failure << '\n';
    return false;
  }
  auto proofs = prove(plan, result);
  if (plan.tensor > 1 || plan.expert > 1) // no plain loop has their order of sums
    proofs.push_back(again(plan, result));
  bool all = true;
  for (const auto& p : proofs) {
    all = all && !p.fails();
    if (!quiet || p.fails())
      (p.fails() ? std::cerr : std::cout)
        << (p.what == verdict::holds   ? "  holds       "
            : p.what == verdict::fails ? "  FAILS       "
                                       : "  no formula  ")
        << what << ": " << p.name << ": " << p.detail << std::endl;
  }
  return all;
}

std::string name_of(const run_request& request) {
  const auto& plan = request.plan;
  return request.text + ", " + std::to_string(plan.dims.stages) + " stages, "
         + (plan.tensor > 1 ? std::to_string(plan.tensor) + " tensor shards"
                                + (plan.sequence_parallel ? " by sequence, " : ", ")
                            : "")
         + (plan.data > 1 ? std::to_string(plan.data) + " data replicas by "
                              + std::string{plan.exchange->name} + ", "
                          : "")
         + (plan.expert > 1 ? "experts over " + std::to_string(plan.expert) + ", " : "")
         + std::to_string(plan.batches().microbatches) + " microbatches, "
         + std::to_string(plan.dims.steps) + " steps of "
         + std::to_string(plan.work->batch) + ", "
         + (plan.clock == clock_kind::real ? std::to_string(plan.threads) + " threads"
                                           : "virtual time");
}

/// Verifies what the options say; -1 if they are wrong, else how many runs do not hold.
int verify(const options& o, int& runs) {
  const auto shared = set_up_training(o);
  if (!shared) {
    std::cerr << "verify: " << shared.error() << '\n';
    return -1;
  }
  for (const auto& request : shared->runs)
    if (!can_be_replayed(request.plan)) {
      std::cerr << "verify: in real time hogwild's replicas write the same memory at "
                   "once, in an order that no record holds: say --clock virtual\n";
      return -1;
    }
  int failures = 0;
  for (const auto& request : shared->runs) {
    ++runs;
    failures += !holds(name_of(request), request.plan, o.quiet);
    if (interruption())
      break;
  }
  return failures;
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
          o.optimizer = "sgd";
          o.steps = 10;
          o.clock = clock;
          o.cost = o.clock == "virtual" ? "F=1,B=2,U=0.5,latency=0.1" : "";
          o.threads = 2;
          to.push_back(o);
          o.schedules = {"pipedream"};
          o.steps = 3; // of four updates each
          if (!real)
            to.push_back(std::move(o));
        }
}

/// The same meshes by sequence, without pipedream, and in real time in shorter runs.
void add_sequence_meshes(std::vector<options>& to, const options& asked) {
  std::vector<options> all;
  add_tensor_meshes(all, asked);
  for (auto& o : all) {
    if (o.schedules.front() == "pipedream")
      continue;
    o.sequence_parallel = true;
    o.length = 12; // a multiple of every number of shards
    o.steps = o.clock == "virtual" ? 10 : 2;
    to.push_back(std::move(o));
  }
}

/// Experts on 1, 2 and 4 ranks, by both gates.
void add_expert_meshes(std::vector<options>& to, const options& asked) {
  for (const char* clock : {"virtual", "real"})
    for (const char* gate : {"switch", "gshard"})
      for (const int pipe : {1, 2})
        for (const auto& [data, expert] :
             {std::pair{1, 1}, {2, 1}, {2, 2}, {4, 2}, {4, 4}}) {
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
          o.exchange = expert == 1 && pipe == 1 ? "zero1" : "ring";
          o.microbatches = 4 * data;
          o.batch = 4 * data + 1;
          o.optimizer = "sgd";
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

/// Tiny models and awkward sizes: what --all covers.
std::vector<options> whole_catalog(const options& asked) {
  std::vector<options> result;
  const auto add = [&](const std::string& model, const std::string& schedules,
                       int stages, int microbatches, std::int64_t batch,
                       const std::string& split, const std::string& optimizer) {
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
        o.optimizer = optimizer;
        o.steps = 4;
        o.clock = clock;
        o.cost = o.clock == "virtual" ? "F=1,B=2,U=0.5" : "";
        o.threads = threads;
        result.push_back(std::move(o));
      }
  };
  const std::string one_way = "naive,gpipe,1f1b,pipedream,pipedream:vertical_sync=on,"
                              "pipedream:update_every=3,ampnet,"
                              "ampnet:max_active_keys=6,min_update_frequency=2";
  for (const int stages : {1, 2, 3, 5, 8})
    for (const int microbatches : {1, 3, 8, 32})
      add("gpt", one_way, stages, microbatches, microbatches + 2, "", "adamw");
  for (const int stages : {1, 2, 4, 8})
    add("gpt", "2bw", stages, 8, 19, "", "sgd");
  for (const int stages : {2, 4, 8})
    for (const int microbatches : {2, 8, 12})
      add("gpt", "chimera", stages, microbatches, microbatches + 1, "", "adamw");
  add("gpt", "all", 4, 8, 11, "3,1,3,1", "adamw");
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
            stages, data * 4, data * 4 + 1, "", "adamw");
        for (auto o = begin; o < result.size(); ++o) {
          result[o].mesh = "data=" + std::to_string(data);
          result[o].exchange = exchange;
        }
      }
  add_exchanges_apart(result, asked);
  add_tensor_meshes(result, asked);
  add_sequence_meshes(result, asked);
  add_expert_meshes(result, asked);
  add("lenet", "all", 4, 4, 8, "", "sgd");
  add("mlp", "all", 4, 4, 8, "", "adamw");
  return result;
}

int run(const options& o) {
  int runs = 0, failures = 0;
  for (const auto& one : o.all ? whole_catalog(o) : std::vector{o}) {
    const int failed = verify(one, runs);
    if (failed < 0)
      return 2;
    failures += failed;
    if (interruption())
      return 130;
  }
  if (!o.quiet)
    std::cout << runs << " runs, " << failures << " with a proof that fails\n";
  return failures == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  const program_about about{
    .name = "verify",
    .description =
      "Proves a schedule: a flush schedule against one plain loop, any "
      "schedule by replaying its record, and by its formula in a loop that "
      "has not seen the record.",
    .has_all = true,
    .keeps = false,
    .defaults = {.width = 32, .length = 16, .schedules = {"all"}, .steps = 5},
  };
  return run_program(about, argc, argv, run);
}
