// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/verified_catalog.hpp"

#include "experiments/session/fitting_schedules.hpp"
#include "experiments/session/optimizer_variants.hpp"
#include "experiments/session/verified_meshes.hpp"
#include "schedules/catalog/catalog.hpp"

#include <string>

namespace troupe {

namespace {

using names = std::vector<std::string>;

/// Adds tiny models in pipelines of many sizes. All runs share some options; each call
/// adds the differing ones.
class pipelines {
public:
  pipelines(std::vector<typed_options>& to, const typed_options& usual)
    : to_(to), usual_(usual) {}

  /// Adds the same run in virtual time, and in real time with one thread and with two.
  void add(const std::string& model, const names& schedules, int stages,
           int microbatches, std::int64_t batch, const typed_mesh& mesh = {}) {
    auto o = usual_;
    o.model = {
      .name = model, .layers = 8, .width = 16, .heads = 2, .length = 8, .words = 19};
    o.schedules = {.names = schedules, .microbatches = microbatches, .steps = 4};
    o.mesh = mesh;
    o.mesh.stages = stages;
    o.data.batch = batch;
    // The formulas of papers assume updates without cost; one size in three has a cost.
    o.cost = microbatches % 3 == 0 ? "F=1,B=2,U=0.5" : "F=1,B=2";
    o.run.clock = "virtual";
    o.run.threads = 1;
    to_.push_back(o);
    o.cost.clear();
    o.run.clock = "real";
    to_.push_back(o);
    o.run.threads = 2;
    to_.push_back(o);
  }

  void add_sizes() {
    const names one_way{"naive",
                        "gpipe",
                        "1f1b",
                        "pipedream",
                        "pipedream:vertical_sync=on",
                        "pipedream:update_every=3",
                        "ampnet",
                        "ampnet:max_active_keys=6,min_update_frequency=2"};
    for (const int stages : {1, 2, 3, 5, 8})
      for (const int microbatches : {1, 3, 8, 32})
        add("gpt", one_way, stages, microbatches, microbatches + 2);
    for (const int stages : {1, 2, 4, 8})
      add("gpt", {"2bw"}, stages, 8, 19);
    for (const int stages : {2, 4, 8})
      for (const int microbatches : {2, 8, 12})
        add("gpt", {"chimera", "chimera:forward_doubling=on"}, stages, microbatches,
            microbatches + 1);
    // The network has eight blocks, so that every stage has one even with many stages
    // on a rank.
    for (const int stages : {1, 2, 4})
      for (const int microbatches : {4, 9, 16})
        add("gpt", all_that_fit(stages, microbatches, 8), stages, microbatches,
            microbatches + 3);
    add("gpt", {"interleaved:v=4", "looped_bfs:v=4", "hanayo:waves=2"}, 2, 6, 7);
    add("gpt", {"zb-auto:f=3,i=2,w=1,most_held=3", "chimera:pairs=2"}, 4, 8, 9);
    add("gpt", {"chimera:forward_doubling=on"}, 4, 16, 17);
    add("gpt", all_that_fit(4, 8, 4), 4, 8, 11, {.split = "3,1,3,1"});
  }

  void add_replicas() {
    for (const std::string exchange :
         {"naive", "tree", "ring", "halving", "server", "zero1", "zero2", "zero3"})
      for (const int data : {2, 3, 4})
        for (const int stages : {1, 2, 4}) {
          if (stages != 2 && exchange != "ring")
            continue;
          names schedules{
            "naive", "gpipe", "1f1b", "pipedream", "pipedream:update_every=3", "2bw"};
          if (stages % 2 == 0)
            schedules.emplace_back("chimera");
          new_.add(schedules, stages, 4, 8, 2);
          add("gpt", schedules, stages, data * 4, data * 4 + 1,
              {.axes = "data=" + std::to_string(data), .exchange = exchange});
          if (data == 3 && stages == 2)
            add("gpt", {"1f1b", "2bw", "chimera"}, stages, 12, 13,
                {.axes = "data=3", .exchange = exchange, .compress = "bf16"});
        }
  }

  /// Adds runs with recomputed forwards, and with microbatches of different sizes.
  void add_recomputed_and_uneven() {
    const auto first_new = to_.size();
    for (const std::string recompute :
         {"stage", "stage,ahead", "blocks=1", "blocks=2,ahead"})
      for (const int data : {1, 2}) {
        names schedules{"gpipe", "1f1b", "chimera", "pipedream", "2bw"};
        new_.add(schedules, 2, 4, 8, 4);
        add("gpt", schedules, 2, 4 * data, 4 * data + 1,
            {.axes = "data=" + std::to_string(data), .recompute = recompute});
      }
    for (auto i = first_new; i < to_.size(); ++i) {
      auto& schedules = to_[i].schedules;
      schedules.sizes = schedules.microbatches == 4 ? "1,3,1,2" : "2,1,1,4,1,1,3,1";
      to_[i].data.batch = schedules.microbatches == 4 ? 7 : 14;
      if (i % 2 == 0)
        schedules.lengths = "8,5,3";
    }
  }

private:
  std::vector<typed_options>& to_;
  const typed_options& usual_;
  new_schedules new_;
};

} // namespace

std::vector<options> verified_catalog(const options& asked) {
  typed_options usual;
  usual.data.seed = asked.data.seed;
  usual.run.precision = asked.run.products == precision::bf16 ? "bf16" : "fp32";
  std::vector<typed_options> typed_runs;
  pipelines tiny_models{typed_runs, usual};
  tiny_models.add_sizes();
  tiny_models.add_replicas();
  tiny_models.add_recomputed_and_uneven();
  add_exchanges_apart(typed_runs, usual);
  add_tensor_meshes(typed_runs, usual);
  add_sequence_meshes(typed_runs, usual);
  add_expert_meshes(typed_runs, usual);
  add_tied_meshes(typed_runs, usual);
  for (const std::string images : {"lenet", "lenet5", "mlp"})
    tiny_models.add(images, all_that_fit(4, 4, 4), 4, 4, 8);
  std::vector<options> result;
  for (std::size_t i = 0; i < typed_runs.size(); ++i) {
    set_optimizer_variant(typed_runs[i], i);
    auto& parsed = result.emplace_back(parse(typed_runs[i], true).value());
    parsed.run.stall_timeout = asked.run.stall_timeout;
    parsed.output = asked.output;
  }
  return result;
}

bool always_holds(const options& asked) {
  return asked.run.products != precision::bf16 || asked.mesh.tensor == 1;
}

} // namespace troupe
