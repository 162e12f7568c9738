// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/pipeline/granted_pass.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The logic of a stage without its actor. The core decides which actions the received
/// inputs allow, runs the actions that the scheduler grants, and reports each end.
/// Runs on one thread at a time.
class stage_core {
public:
  /// \param port outlives this object; the constructor sends nothing through the port
  stage_core(std::shared_ptr<const run_plan> plan, position where, stage_port& port,
             stage_work work, std::shared_ptr<stage_meetings> meetings);

  const std::string& name() const { return name_; }

  /// To be called when all actors are wired: the first stage demands a microbatch, and
  /// other stages do nothing.
  void start() { stage_.is_first() ? stage_.port.demand() : void(); }

  // Each function stores an input. A forward or backward with complete inputs is
  // announced to the scheduler as arrived. A forward also waits for its weight version.
  void receive(const activation& input);
  void receive(const labels& input);
  void receive(const gradient& input);

  /// Handles a message of a meeting, or the optimizer shard's message that the next
  /// version is written.
  void receive(mail::meeting_message message);

  /// Runs an action that the scheduler has granted, for the first time or after a
  /// pause. An update is requested from the optimizer shard. A pass may be granted
  /// while another pass is under way: the version ledger advances in the order of
  /// grants.
  /// \param turn position of the pass in the device's order; may be no_turn
  /// \param pair the second action of a pair, if `a` is the first
  void run(const action& a, std::int64_t turn = no_turn,
           const std::optional<action>& pair = {});

  /// Sends a neighbour the output of a pass that has been launched on a GPU, if the
  /// pass has an output. To be called only for passes whose output leaves at launch and
  /// not at the end of the pass.
  /// \pre the pass has not ended
  void launched(const mail::launched& l);

  /// Handles the end of work that the core gave the device: a piece of a pass, or a
  /// copy of parameters.
  /// \pre the work has not failed
  /// \throws std::runtime_error if a loss is not finite
  void ended(const mail::ended& e);

  /// The stage's final parameters and gradients.
  /// \throws std::logic_error if an update is still under way
  mail::collected collect() const { return stage_.updates.collect(); }
  /// The newest version, and the older versions that are still needed; the newest
  /// first.
  /// \throws std::logic_error if an update is still under way
  std::vector<aged_version> versions() const { return stage_.updates.versions(); }

  /// Describes the input or the work that the stage waits for. The text is empty if all
  /// backwards of the stage have ended and the stage waits for nothing.
  mail::waiting_for explain() const;

private:
  action action_of(op operation, int microbatch) const {
    return {operation, stage_.where.direction, stage_.where.stage, microbatch};
  }
  void arrive_if_possible(int microbatch);
  granted_pass* find(const action& a);
  granted_pass& free_pass();
  void end_update(const mail::updated& last);
  void report_if_updated();

  stage_context stage_;
  std::string name_;
  // Passes under way and free objects: no more than the device accepts at a time.
  std::list<granted_pass> passes_;
  std::vector<int> unversioned_; // forwards whose weight version is not made yet
  // Unfinished GPU works that write an input, keyed by the pass that reads the input.
  std::map<std::pair<op, int>, std::shared_ptr<gpu_completion>> input_writers_;
};

} // namespace troupe
