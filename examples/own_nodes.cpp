// SPDX-License-Identifier: BSD-3-Clause
// One training on two nodes, with tensor shards, checkpoints and proofs.
//   own_nodes                      both nodes in this process, for a first try
//   own_nodes node HOST:PORT       a node, until its standard input ends
//   own_nodes HOST:PORT HOST:PORT  trains on two such nodes
#include <troupe/troupe.hpp>

#include <filesystem>
#include <iostream>

int main(int argc, char** argv) {
  const troupe::model_options gpt{.layers = 2, .width = 32, .heads = 4, .length = 16};
  const auto data = troupe::open_data("synthetic", gpt, 1).value();
  troupe::training_job job{
    .model = gpt, .data = data, .pipeline_schedule = troupe::one_f_one_b()};
  job.stages = 2;
  job.tensor = 2;
  job.steps = 6;
  const bool is_node = argc == 3 && argv[1] == std::string{"node"};
  std::vector<std::unique_ptr<troupe::training_node>>
    nodes; // they serve while they live
  for (int i = 0; i < (argc == 1 ? 2 : is_node ? 1 : 0); ++i) {
    auto node =
      troupe::training_node::start(job, {.listen = is_node ? argv[2] : "127.0.0.1:0"});
    if (!node)
      return std::cerr << node.error() << '\n', 1;
    std::cout << "node at " << (*node)->address() << std::endl;
    job.nodes.addresses.push_back((*node)->address());
    nodes.push_back(std::move(*node));
  }
  if (is_node)
    return std::cin.ignore(1 << 30), 0;
  job.nodes.addresses.insert(job.nodes.addresses.end(), argv + 1, argv + argc);
  job.checkpoints = {.folder = "own_nodes_checkpoints", .every = 2};
  std::filesystem::remove_all(job.checkpoints.folder); // of an earlier try
  job.verify = true;
  const auto result = troupe::train(job);
  if (const auto failure = result ? result->failure : result.error(); !failure.empty())
    return std::cerr << failure << '\n', 1;
  for (const auto& proof : result->proofs)
    std::cout << "proved: " << proof.name << ": " << proof.detail << '\n';
  for (const auto& [name, parameter] : result->parameters)
    std::cout << name << ": " << parameter.values.size() << " values\n";
}
