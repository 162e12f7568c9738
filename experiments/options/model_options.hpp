// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/network.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

class option_list;

/// Options of the model, as a user types them.
struct typed_model {
  std::string name = "gpt";
  std::optional<std::int64_t> layers;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t length = 64;
  std::int64_t words = 256;
  bool tied = false;
  std::string gate = "switch"; ///< Preset of top_k, capacity and balance.
  int experts = 8;
  std::optional<int> top_k;
  std::optional<double> capacity;
  std::optional<double> balance;
  double gate_noise = 0;
  bool shared_expert = false;
};

/// Layers of gpt, moe and mlp unless given.
inline constexpr std::int64_t usual_layers = 4;

void add_model(option_list& to, typed_model& place);
void add_experts(option_list& to, typed_model& place);

/// Those that change a forward of which nothing is dropped.
/// \param top_k the names of the option for experts of a token
void add_experts_forwards(option_list& to, typed_model& place,
                          const std::string& top_k = "--top-k,--expert-top-k");

/// The model, whose name and sizes are checked where its network is made.
/// \param seed of the gate's noise
tl::expected<model_options, std::string> parse(const typed_model& typed,
                                               std::uint64_t seed);

} // namespace troupe
