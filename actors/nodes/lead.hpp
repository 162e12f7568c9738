// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/common_facts.hpp"
#include "actors/nodes/connector.hpp"
#include "actors/nodes/mailroom.hpp"
#include "actors/nodes/roll_call.hpp"
#include "actors/run/distant_run.hpp"
#include "actors/run/gpu_groups.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// The nodes that play runs of this process, and how they are reached.
struct cluster {
  std::vector<node_address> nodes; ///< Node 1 first.
  std::vector<int> places;         ///< The node of each rank; empty: usual_places.
  std::chrono::milliseconds failure_timeout{5000};
  std::string version; ///< Of troupe.
  connector* by = nullptr;

  /// Of all attempts of a run, which need the same. Null: of this attempt alone.
  common_facts* facts = nullptr;

  /// Set from outside while nodes are waited for. May be null.
  const std::atomic<bool>* interrupted = nullptr;

  /// Told of nodes that play another run, in words. May be empty.
  std::function<void(const std::string&)> waits = {};
};

/// What a run has to say of itself to nodes.
struct run_description {
  std::string options; ///< As text.
  session_id session;  ///< Nobody else knows it.
};

/// A run that nodes play and this process leads.
class lead : public distant_run {
public:
  /// Reaches all nodes, and waits until their parts of the run are there.
  /// \param of outlives it \throws node_failure, std::runtime_error with a sentence;
  /// nodes_differ where no other attempt helps
  lead(const cluster& of, std::shared_ptr<const run_plan> plan,
       const run_description& what);

  /// Ends the run, if nobody has.
  ~lead() override;

  ensemble::distant_maker maker() override { return mail_->maker(); }
  void begin(ensemble& here) override;
  void pause() override { nodes_->tell_all(mail::pause_clock{}); }
  void resume() override { nodes_->tell_all(mail::resume_clock{}); }
  stall_rule::verdict look() override;
  std::string at_work() override { return nodes_->at_work(); }
  std::vector<mail::node_report> end() override;
  known_groups groups() const override { return groups_; }
  bool has_lost(int rank) const override {
    return nodes_->is_gone(places_[static_cast<std::size_t>(rank)]);
  }
  std::int64_t moved() const override { return mail_->moved(); }
  nanoseconds clock_doubt() const override { return nodes_->clock_doubt(); }

  /// Whether a node was lost while the run was under way.
  bool has_lost() const { return nodes_->has_lost(); }

private:
  int count() const { return static_cast<int>(of_.nodes.size()); }
  std::vector<std::string> names() const;
  std::string name_of(int number) const;
  void reach_all();
  void identify_all();
  void compare_facts();
  void prepare_all(const run_description& what);
  std::vector<int> groups_of_gpus();
  void collect_ids(const std::vector<int>& groups);
  void link_all();
  std::unique_ptr<byte_stream> greet_node(int number, const greeting& hello) const;
  mail::prepare facts(const run_description& what) const;
  void hear(int number, const control_frame& frame);
  std::vector<int> layers_for(int number) const;
  void send_layers();

  const cluster& of_;
  std::shared_ptr<const run_plan> plan_;
  std::vector<int> places_;
  session_id session_;
  known_groups groups_;
  std::unique_ptr<roll_call> nodes_;
  std::int64_t moved_ = 0; // bytes of tensors, at the last look
  std::unique_ptr<mailroom> mail_;
};

} // namespace troupe
