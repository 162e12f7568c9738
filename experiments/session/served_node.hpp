// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/serving_node.hpp"
#include "experiments/options/own_parts.hpp"

#include <tl/expected.hpp>

#include <memory>
#include <string>

namespace troupe {

/// How a node of a caller's program serves.
struct served_settings {
  std::string listen = "127.0.0.1:0"; ///< HOST:PORT; port 0: any free port.
  int threads = 0;                    ///< 0: the number of cores.
  std::string folder = ".";           ///< From which runs may read data sets.
  std::string tls;       ///< Three files, as --tls names them; empty: none.
  bool insecure = false; ///< Allows plaintext beyond this machine.
};

/// Starts a node in this process, which serves runs that programs of other processes
/// lead. A run with a network or data of the leader's program needs the same ones here.
/// The error is one sentence about a setting.
tl::expected<std::unique_ptr<serving_node>, std::string>
start_node(own_parts own, const served_settings& settings);

} // namespace troupe
