// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/network.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// Options of the model, as typed by the user.
struct typed_model {
  std::string name = "gpt";
  std::int64_t layers = 4;
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

/// Converts typed options to values. The error is one sentence about an unknown model
/// or gate; sizes are checked where the network is made.
/// \param seed of the gate's noise
tl::expected<model_options, std::string> parse(const typed_model& typed,
                                               std::uint64_t seed);

} // namespace troupe
