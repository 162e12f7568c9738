// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/verified_meshes.hpp"

#include "experiments/session/fitting_schedules.hpp"

#include <array>
#include <utility>

namespace troupe {

namespace {

const std::string costs = "F=1,B=2,U=0.5,latency=0.1";

std::string axes(int data, int pipe, const char* third = "", int size = 0) {
  auto result = "data=" + std::to_string(data) + ",pipe=" + std::to_string(pipe);
  if (size > 0)
    result += std::string{","} + third + "=" + std::to_string(size);
  return result;
}

/// Sets four microbatches for each data replica, one of which is larger.
void set_sizes(typed_options& o, int data, int steps) {
  o.schedules.microbatches = 4 * data;
  o.data.batch = 4 * data + 1;
  o.schedules.steps = steps;
  o.run.threads = 2;
}

} // namespace

void add_exchanges_apart(std::vector<typed_options>& to, const typed_options& usual) {
  for (const std::string exchange :
       {"server:async", "server:staleness=1", "server:staleness=0", "hogwild"})
    for (const std::string clock : {"virtual", "real"})
      for (const int data : {2, 4}) {
        if (clock == "real" && exchange == "hogwild")
          continue;
        auto o = usual;
        o.model = {.layers = 4, .width = 16, .heads = 2, .length = 8, .words = 19};
        o.schedules.names = {"gpipe", "1f1b", "chimera", "pipedream:update_every=3",
                             "2bw"};
        if (exchange.find('=') == std::string::npos)
          o.schedules.names.emplace_back("ampnet:min_update_frequency=3");
        o.mesh.axes = axes(data, 2);
        o.mesh.exchange = exchange;
        set_sizes(o, data, 4);
        o.run.clock = clock;
        if (clock == "virtual")
          o.cost = costs + ",replica=" + (data == 2 ? "1/2.5" : "1/1.2/1/3");
        to.push_back(std::move(o));
      }
}

void add_tensor_meshes(std::vector<typed_options>& to, const typed_options& usual) {
  const std::array exchanges{"ring", "zero1", "zero2", "zero3", "tree"};
  std::size_t turn = 0;
  new_schedules extra_schedules;
  for (const std::string clock : {"virtual", "real"})
    for (const int data : {1, 2, 3, 4})
      for (const int pipe : {1, 2, 3, 4})
        for (const int tensor : {2, 3, 4}) {
          const int ranks = data * pipe * tensor;
          if (ranks > 16)
            continue;
          auto o = usual;
          o.model = {.layers = 4, .width = 24, .heads = 12, .length = 6, .words = 19};
          o.schedules.names = {"1f1b"};
          if (clock == "virtual")
            o.schedules.names = {"naive", "gpipe", "1f1b", "2bw"};
          if (pipe % 2 == 0)
            o.schedules.names.emplace_back("chimera");
          extra_schedules.add(o.schedules.names, pipe, 4, 4,
                              clock == "virtual" ? 2 : 1);
          o.mesh.axes = axes(data, pipe, "tensor", tensor);
          o.mesh.exchange = exchanges[turn++ % exchanges.size()];
          if (data > 1 && turn % 4 == 0)
            o.mesh.compress = "bf16";
          set_sizes(o, data, ranks == 4 ? 40 : 10); // more steps round more
          o.run.clock = clock;
          o.cost = clock == "virtual" ? costs : "";
          to.push_back(o);
          o.schedules.names = {"pipedream", "pipedream:vertical_sync=on",
                               "pipedream:update_every=3"};
          if (clock == "virtual")
            to.push_back(std::move(o));
        }
}

void add_sequence_meshes(std::vector<typed_options>& to, const typed_options& usual) {
  std::vector<typed_options> meshes;
  add_tensor_meshes(meshes, usual);
  for (auto& o : meshes) {
    if (o.schedules.names.front() == "pipedream")
      continue;
    o.mesh.sequence_parallel = true;
    o.model.length = 12; // a multiple of every number of shards
    o.schedules.steps = o.run.clock == "virtual" ? 10 : 2;
    to.push_back(std::move(o));
  }
}

void add_expert_meshes(std::vector<typed_options>& to, const typed_options& usual) {
  const std::array exchanges{"zero1", "ring", "server", "tree", "halving"};
  std::size_t turn = 0;
  new_schedules extra_schedules;
  for (const char* clock : {"virtual", "real"})
    for (const char* gate : {"switch", "gshard"})
      for (const int pipe : {1, 2})
        for (const auto& [data, expert] :
             {std::pair{1, 1}, {2, 1}, {3, 1}, {4, 1}, {2, 2}, {4, 2}, {4, 4}}) {
          auto o = usual;
          o.model = {.name = "moe",
                     .layers = 4,
                     .width = 16,
                     .heads = 2,
                     .length = 6,
                     .words = 19,
                     .gate = gate,
                     .experts = 4,
                     .capacity = 1,
                     .gate_noise = 0.1,
                     .shared_expert = pipe == 2};
          o.schedules.names = {"naive", "gpipe", "1f1b", "2bw",
                               "pipedream:update_every=2"};
          if (pipe == 2)
            o.schedules.names.emplace_back("chimera");
          extra_schedules.add(o.schedules.names, pipe, 4, 4, 3);
          o.mesh.recompute = turn % 3 == 0   ? "stage,ahead"
                             : turn % 3 == 1 ? "blocks=1"
                                             : "none";
          o.mesh.axes = axes(data, pipe, "expert", expert);
          o.mesh.exchange = exchanges[turn++ % exchanges.size()];
          set_sizes(o, data, 10);
          o.run.clock = clock;
          to.push_back(std::move(o));
        }
}

void add_tied_meshes(std::vector<typed_options>& to, const typed_options& usual) {
  struct tied_mesh {
    int data, pipe, tensor, expert; // no experts: gpt
  };
  const std::array exchanges{"zero1", "ring", "zero2", "server", "zero3", "tree"};
  const std::array of_experts{"zero1", "ring", "server"};
  std::size_t turn = 0;
  new_schedules extra_schedules;
  for (const std::string clock : {"virtual", "real"})
    for (const auto& [data, pipe, tensor, expert] : {tied_mesh{1, 1, 1, 0},
                                                     {1, 2, 1, 0},
                                                     {1, 4, 1, 0},
                                                     {2, 1, 1, 0},
                                                     {2, 2, 1, 0},
                                                     {3, 2, 1, 0},
                                                     {4, 2, 1, 0},
                                                     {2, 3, 1, 0},
                                                     {4, 1, 1, 0},
                                                     {1, 2, 2, 0},
                                                     {2, 2, 2, 0},
                                                     {3, 1, 3, 0},
                                                     {2, 4, 2, 0},
                                                     {1, 2, 1, 1},
                                                     {2, 2, 1, 1},
                                                     {2, 2, 1, 2},
                                                     {4, 2, 1, 2},
                                                     {4, 1, 1, 4},
                                                     {6, 2, 1, 2}}) {
      auto o = usual;
      o.model = {.name = expert > 0 ? "moe" : "gpt",
                 .layers = 4,
                 .width = 24,
                 .heads = 6,
                 .length = 6,
                 .words = 19,
                 .tied = true,
                 .experts = 4};
      o.schedules.names = {"naive", "gpipe", "1f1b", "2bw"};
      if (pipe % 2 == 0)
        o.schedules.names.emplace_back("chimera");
      extra_schedules.add(o.schedules.names, pipe, 4, 4, 3);
      o.mesh.axes = expert > 0 ? axes(data, pipe, "expert", expert)
                               : axes(data, pipe, "tensor", tensor);
      o.mesh.exchange = expert > 0 ? of_experts[turn++ % of_experts.size()]
                                   : exchanges[turn++ % exchanges.size()];
      set_sizes(o, data, 4);
      o.run.clock = clock;
      o.cost = clock == "virtual" && expert == 0 ? costs : "";
      to.push_back(std::move(o));
    }
}

} // namespace troupe
