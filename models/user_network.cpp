// SPDX-License-Identifier: BSD-3-Clause
#include "models/user_network.hpp"

#include <algorithm>
#include <map>

namespace troupe {

namespace {

using problem = tl::unexpected<std::string>;

std::string number(std::size_t layer) {
  return "layer " + std::to_string(layer);
}

/// One sentence about layers that do not fit together; empty if all fit.
std::string validation_error(const layer_list<float>& layers,
                             std::int64_t predictions) {
  std::map<std::string, std::size_t> names;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0 && layers[i]->input() != layers[i - 1]->output())
      return number(i) + " takes " + std::to_string(layers[i]->input())
             + " values a sample, but " + number(i - 1) + " gives "
             + std::to_string(layers[i - 1]->output());
    for (const auto& p : layers[i]->parameters()) {
      const bool plain = std::ranges::all_of(
        p.name, [](unsigned char c) { return c > ' ' && c < 0x7f; });
      if (p.name.empty() || p.name == "__metadata__" || !plain)
        return number(i)
               + " has a parameter with an invalid name: allowed are ASCII letters, "
                 "digits and signs, but not __metadata__";
      if (const auto [first, is_new] = names.emplace(p.name, i); !is_new)
        return number(first->second) + " and " + number(i)
               + " both have a parameter called '" + p.name
               + "': names are unique in a network";
    }
  }
  const auto outputs = layers.back()->output();
  if (predictions < 1 || outputs % predictions != 0)
    return "the last layer has " + std::to_string(outputs)
           + " outputs for a sample, which is no multiple of "
           + std::to_string(predictions)
           + " predictions: all predictions have the same number of classes";
  return {};
}

} // namespace

tl::expected<network<float>, std::string> network_of(const user_network& user) {
  if (user.layers.empty())
    return problem{"a network has at least one layer"};
  network<float> result;
  result.options.model = "own";
  for (const auto& entry : user.layers) {
    if (!entry)
      return problem{number(result.layers.size()) + " is null"};
    result.unit_of_layer.push_back(static_cast<int>(result.layers.size()));
    result.layers.push_back(entry->as_layer(entry));
    if (!result.layers.back())
      return problem{number(result.layers.size() - 1) + " makes no layer"};
    if (const auto operations = result.layers.back()->operations();
        !(operations >= 0 && operations < 1e18))
      return problem{number(result.layers.size() - 1)
                     + ": operations() must return at least 0 and less than 1e18"};
  }
  if (auto error = validation_error(result.layers, user.predictions); !error.empty())
    return problem{std::move(error)};
  if (user.reads_tokens
      && dynamic_cast<const user_layer*>(user.layers.front().get()) == nullptr)
    return problem{
      "a network that reads tokens must begin with a user_layer: linear reads "
      "pixels"};
  result.reads_tokens = user.reads_tokens;
  result.rows = user.predictions;
  result.classes = result.layers.back()->output() / user.predictions;
  return result;
}

} // namespace troupe
