// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/embedding/training_job.hpp"

#include <tl/expected.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

// A node of a user's program: performs ranks of a job that another process leads.

namespace troupe {

class serving_node;

/// Settings of a node.
struct node_settings {
  /// Address to listen at, "HOST:PORT". Port 0: any free port.
  std::string listen = "127.0.0.1:4242";
  std::optional<tls_files> tls = {}; ///< Absent: connections are not encrypted.
  /// True: an address that other machines reach is allowed without TLS.
  bool insecure = false;
  /// Called on the node's thread with a sentence about each start and end of a run. May
  /// be empty. Exceptions are ignored.
  std::function<void(const std::string&)> report = {};
};

/// A node of one job, on threads of its own. Leaders call train() with the same job and
/// this node's address in `nodes`; their runs follow one another. The node compares its
/// job with the leader's, and refuses another. The node uses `threads` of its own job,
/// and reads its own copy of the data. `nodes`, `checkpoints`, `begin`, `verify`,
/// `held_out` and `draws` concern the leader alone.
class training_node {
public:
  /// Starts a node, and plans the job. The error is one sentence about the job, or
  /// about the address. \throws no_thread if a thread cannot be started
  static tl::expected<std::unique_ptr<training_node>, std::string>
  start(training_job job, const node_settings& settings = {});

  /// Ends the node. A run in progress ends too, and fails for the leader.
  ~training_node();
  training_node(const training_node&) = delete;
  training_node& operator=(const training_node&) = delete;

  /// The address at which the node listens, for `job_nodes::addresses`.
  std::string address() const;

private:
  explicit training_node(std::unique_ptr<serving_node> started);

  std::unique_ptr<serving_node> node_;
};

} // namespace troupe
