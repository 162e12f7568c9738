// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/mesh_options.hpp"
#include "experiments/options/node_options.hpp"
#include "experiments/options/run_options.hpp"
#include "models/data/data_set.hpp"
#include "models/network.hpp"
#include "models/user_layer.hpp"
#include "models/weights.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Parts of a training that a program provides which performs sessions itself. Other
/// processes do not have these parts, so such runs have no nodes.
struct own_parts {
  std::optional<user_network> network = {};  ///< In place of --model.
  std::shared_ptr<const data_set> data = {}; ///< In place of --data; null: none.
  /// Initial values of parameters by name, in place of those of the seed.
  std::map<std::string, std::vector<float>> values = {};
};

/// The facts of own parts that decide a run, with checksums, to be compared between the
/// leader of a run and its nodes; empty without a network and data. A network's facts
/// are sizes, operations and first values; its passes cannot be compared.
std::string text_of(const own_parts& own);

/// One sentence if own parts do not go with the other options, else an empty text.
std::string own_error(const own_parts& own, const mesh_options& mesh,
                      const run_options& run);

/// One sentence if the initial values do not fit the network, else an empty text.
std::string values_error(const own_parts& own, const network<float>& whole);

/// Initial weights with the values of `own` in place of those of `weights`. The result
/// shares ownership of the layers, and has a copy of the values.
/// \pre values_error() is empty
weight_source with_values(weight_source weights, const own_parts& own,
                          const network<float>& whole);

} // namespace troupe
