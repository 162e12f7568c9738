// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

/// A node on a thread of its own, which serves runs that other processes lead. A run
/// with a network or data of the leader's program needs the same ones here.
class served_node {
public:
  /// The error is one sentence about a setting.
  static tl::expected<std::unique_ptr<served_node>, std::string>
  start(own_parts own, const served_settings& settings);

  /// Ends the node, and the run that it performs.
  ~served_node();
  served_node(const served_node&) = delete;
  served_node& operator=(const served_node&) = delete;

  /// HOST:PORT, for --nodes; empty after end().
  std::string address() const;

  /// Ends the node as the destructor does.
  void end();

private:
  struct state;
  explicit served_node(std::unique_ptr<state> started);

  std::unique_ptr<state> state_;
};

} // namespace troupe
