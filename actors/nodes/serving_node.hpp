// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/worker.hpp"
#include "messaging/links/tls_files.hpp"

#include <tl/expected.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// A node_server on a thread of its own.
class serving_node {
public:
  struct settings {
    std::string listen;                ///< HOST:PORT; port 0: any free port.
    std::optional<tls_files> tls = {}; ///< Absent: connections are not encrypted.
    bool insecure = false;             ///< Allows other machines without TLS.
    /// Makes the plan of a part, as worker_services::plan.
    std::function<tl::expected<run_plan, std::string>(const mail::prepare&)> plan;
    /// Called on the node's thread with a sentence about each start and end of a run.
    /// May be empty. Exceptions are ignored.
    std::function<void(const std::string&)> report = {};
  };

  /// The error is one sentence about the address or the files.
  /// \throws no_thread if a thread cannot be started
  static tl::expected<std::unique_ptr<serving_node>, std::string> start(settings how);

  /// Ends the node. A run in progress ends too, and fails for the leader.
  ~serving_node();
  serving_node(const serving_node&) = delete;
  serving_node& operator=(const serving_node&) = delete;

  /// HOST:PORT at which the node listens.
  std::string address() const;

private:
  struct state;
  explicit serving_node(std::unique_ptr<state> started);

  std::unique_ptr<state> state_;
};

} // namespace troupe
