// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/saved_network.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/options/saved_options.hpp"
#include "experiments/options/training_options.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe {

namespace {

/// Reads the weights of a network whose layers are known. Returns one sentence about a
/// mistake, else an empty text.
std::string read_weights(const std::string& path, saved_network& to) {
  if (is_of_weights(path)) {
    auto read = weights_from(path, to.plan.whole, &to.notes);
    if (!read)
      return read.error();
    to.plan.weights = std::move(*read);
    to.from = path;
    return {};
  }
  auto newest = newest_checkpoint(path, to.plan.whole);
  if (!newest)
    return newest.error();
  to.from = newest->folder.string();
  to.passed_over = std::move(newest->passed_over);
  to.keeps_facts = newest->facts.training.has_value();
  to.plan.weights = [saved = newest->saved](std::size_t layer, float* bucket) {
    std::ranges::copy(saved->parameters[layer], bucket);
  };
  return {};
}

} // namespace

tl::expected<saved_network, std::string> open_saved_network(const options& o) {
  if (o.inference.weights.empty())
    return problem{
      "--weights is missing: give a file of --save, or a folder of --checkpoint"};
  auto model = o.model;
  model.stored = o.run.products;
  auto whole = make_network<float>(model);
  if (!whole)
    return problem{whole.error()};
  saved_network result;
  result.plan.whole = std::move(*whole);
  auto first_layers = cut(result.plan.whole, o.mesh.stages, {});
  if (!first_layers)
    return problem{first_layers.error()};
  result.plan.first_layers = std::move(*first_layers);
  result.plan.threads =
    o.run.threads > 0
      ? o.run.threads
      : static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  result.plan.processors = o.run.processors;
  if (const auto listed = std::ssize(o.run.processors);
      o.run.lists_processors && listed > o.mesh.stages)
    return problem{
      "--device lists " + std::to_string(listed) + " processors for "
      + (o.mesh.stages == 1 ? "one stage" : std::to_string(o.mesh.stages) + " stages")
      + ": list at most one processor for each stage"};
  result.plan.stall_timeout = o.run.stall_timeout;
  if (auto error = read_weights(o.inference.weights, result); !error.empty())
    return problem{error};
  if (auto slow = warning_of(o.run); !slow.empty())
    result.notes.push_back(std::move(slow));
  return result;
}

std::vector<std::string> warnings_of(const saved_network& network) {
  auto result = network.notes;
  for (const auto& why : network.passed_over)
    result.push_back("checkpoint skipped: " + why);
  if (!network.keeps_facts)
    result.push_back(without_facts(network.from));
  return result;
}

std::string description(const saved_network& network) {
  const auto& [whole, stages] = std::pair{network.plan.whole, network.plan.stages()};
  return whole.options.model + " of " + std::to_string(whole.values())
         + " parameters from " + network.from + "; " + std::to_string(stages)
         + (stages == 1 ? " stage" : " stages");
}

} // namespace troupe
