// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/network.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

class option_list;

/// Options of the model, as typed by the user.
struct typed_model {
  std::string name = "gpt";
  std::optional<std::int64_t> layers;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t length = 64;
  std::int64_t words = 256;
  bool tied = false;
  /// The gate, "switch" or "gshard", which sets `top_k` and `capacity` if these are
  /// absent.
  std::string gate = "switch";
  int experts = 8;
  std::optional<int> top_k;
  std::optional<double> capacity;
  std::optional<double> balance;
  double gate_noise = 0;
  bool shared_expert = false;
};

/// The default number of layers of gpt, moe and mlp.
inline constexpr std::int64_t usual_layers = 4;

/// Adds the options of the model, without experts. Parsing writes to `typed`, which
/// must outlive `to`.
void add_model(option_list& to, typed_model& typed);
/// Adds all options of experts, for programs that train. Parsing writes to `typed`,
/// which must outlive `to`.
void add_experts(option_list& to, typed_model& typed);

/// Adds the options of experts for programs that compute only forwards, which drop no
/// tokens: --experts, --shared-expert and the option `top_k`.
/// \param typed receives the values of the parsed command line; outlives `to`
/// \param top_k names of the option for the number of experts that receive a token
void add_experts_forwards(option_list& to, typed_model& typed,
                          const std::string& top_k = "--top-k,--expert-top-k");

/// Converts typed options to values. The error is one sentence about an unknown model
/// or gate; sizes are checked where the network is made.
/// \param seed of the gate's noise
tl::expected<model_options, std::string> parse(const typed_model& typed,
                                               std::uint64_t seed);

} // namespace troupe
