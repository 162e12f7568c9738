// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/common_facts.hpp"
#include "actors/nodes/connector.hpp"
#include "actors/nodes/message_router.hpp"
#include "actors/nodes/node_registry.hpp"
#include "actors/run/distant_run.hpp"
#include "actors/run/gpu_groups.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// The leader of a run over nodes: connects to nodes, starts the run on all nodes, and
// ends the run.

namespace troupe {

/// The nodes that take part in this process's runs, and how the leader reaches them.
struct cluster {
  std::vector<node_address> nodes; ///< Address of each node, from node 1 on.
  /// The node of each rank, from 1; empty: default_node_map().
  std::vector<int> node_map;
  /// Time without a message after which a node is lost.
  std::chrono::milliseconds failure_timeout{5000};
  std::string version; ///< Version of troupe.
  /// Opens connections to the nodes; not null, and outlives the leader.
  connector* connections = nullptr;

  /// Facts of the run's attempts so far: each attempt's facts are added, and must be
  /// equal. Null if only the facts of one attempt are compared.
  common_facts* facts = nullptr;

  /// Set by another thread to end the waits of the leader's constructor. May be null.
  const std::atomic<bool>* interrupted = nullptr;

  /// Called with a sentence when a node reports that it executes another run, on a
  /// thread of the connections. Must not call the leader. May be empty.
  std::function<void(const std::string&)> on_wait = {};
};

/// The description of a run that nodes receive.
struct run_description {
  std::string options; ///< The run's options as text.
  session_id session;  ///< A secret of this run's nodes, and the attempt's number.
};

/// A run over nodes that this process leads.
class leader : public distant_run {
public:
  /// Connects to all nodes, and waits until each node's part of the run is ready.
  /// \param cluster_options outlives this object
  /// \pre plan->work
  /// \pre node_map_error() is empty for the node map
  /// \throws node_failure if a node is lost or cannot take part
  /// \throws lasting_refusal if options, files or versions must change before another
  /// attempt can succeed; nodes_differ is such an error
  /// \throws ended_while_waiting if `cluster::interrupted` is set
  /// \throws std::runtime_error with a sentence in other cases, such as no_thread
  leader(const cluster& cluster_options, std::shared_ptr<const run_plan> plan,
         const run_description& description);

  /// Ends the run, unless end() was called.
  ~leader() override;

  local_run::distant_maker maker() override { return router_->maker(); }
  void begin(local_run& local) override;
  void pause() override { nodes_->send_all(mail::pause_clock{}); }
  void resume() override { nodes_->send_all(mail::resume_clock{}); }
  stall_rule::verdict look() override;
  std::string at_work() override { return nodes_->at_work(); }
  std::vector<mail::node_report> end() override;
  known_groups groups() const override { return groups_; }
  bool has_lost(int rank) const override {
    return nodes_->is_gone(node_map_[static_cast<std::size_t>(rank)]);
  }
  std::int64_t moved() const override { return router_->moved(); }
  nanoseconds clock_doubt() const override { return nodes_->clock_doubt(); }

  /// True if a node was lost after begin(), or had failed before begin(). False until
  /// begin() is called.
  bool has_lost() const { return nodes_->has_lost(); }

private:
  int count() const { return static_cast<int>(cluster_.nodes.size()); }
  std::vector<std::string> names() const;
  std::string name_of(int number) const;
  void reach_all();
  void identify_all();
  void compare_facts();
  void prepare_all(const run_description& description);
  std::vector<int> groups_of_gpus();
  void collect_ids(const std::vector<int>& groups);
  void link_all();
  std::unique_ptr<byte_stream> greet_node(int number, const greeting& hello) const;
  mail::prepare facts(const run_description& description) const;
  void handle(int number, const control_frame& frame);
  std::vector<int> layers_for(int number) const;
  void send_layers();

  const cluster& cluster_;
  std::shared_ptr<const run_plan> plan_;
  std::vector<int> node_map_;
  session_id session_;
  known_groups groups_;
  std::unique_ptr<node_registry> nodes_;
  std::int64_t moved_ = 0; // bytes of tensors at the last call of `look()`
  std::unique_ptr<message_router> router_;
};

} // namespace troupe
