// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/node_address.hpp"
#include "messaging/links/tls.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Options of runs that other processes perform, as typed by the user.
struct typed_nodes {
  std::string nodes;
  std::string node_map;
  /// Seconds without a message after which a node counts as lost.
  double failure_timeout = 5;
  bool restart = false;
  bool keep_steps = false;
  std::string tls;
  bool insecure = false;
};

/// The processes that perform a run, if this process does not, and the files and rules
/// for connections.
struct node_options {
  std::vector<node_address> nodes; ///< Empty: this process performs the whole run.
  /// Number of each rank's node, counted from 1. Empty: ranks in order, equally many on
  /// each node.
  std::vector<int> node_map;
  /// Time without a message after which a node counts as lost.
  std::chrono::milliseconds failure_timeout{5000};
  bool restart = false;
  bool keep_steps = false;
  std::optional<tls_files> tls;
  bool insecure = false;
};

/// Parses and checks the typed options. The error is one sentence with the mistake and
/// the allowed values. Without addresses of nodes, `node_map` is ignored.
tl::expected<node_options, std::string> parse(const typed_nodes& typed);

/// Reads "CERT,KEY,CA", and opens no file. The error is one sentence about the mistake.
tl::expected<tls_files, std::string> parse_tls(const std::string& text);

} // namespace troupe
