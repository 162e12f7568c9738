// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/connector.hpp"
#include "actors/nodes/inbox.hpp"
#include "actors/nodes/mailroom.hpp"
#include "actors/run/gpu_groups.hpp"

#include <tl/expected.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

// A node's part of one run, from the leader's `prepare` to the report at the end.

namespace troupe {

/// Services of a node for the runs of leaders.
struct player_means {
  /// Makes the plan that a leader describes, within the limits of the node. The error
  /// says why the node refuses the plan.
  std::function<tl::expected<run_plan, std::string>(const mail::prepare&)> plan;

  connector* by = nullptr;
};

/// Runs a node's part of one run: the ranks in this process.
class player {
public:
  /// \param leader the control line that `request` came on
  /// \param services outlives this object
  player(const player_means& means, mail::prepare begins,
         std::shared_ptr<control_line> lead);
  ~player();
  player(const player&) = delete;
  player& operator=(const player&) = delete;

  /// Runs until the run ends, the leader is lost, or `stop` is set. Reports errors to
  /// the leader.
  void play(const std::atomic<bool>* stop = nullptr);

  // Called on other threads: messages of the leader, and connections of other nodes of
  // the run.
  void hear(control_frame frame);
  void lose_lead();
  bool expects(const greeting& guest) const;
  void join(const greeting& guest, std::unique_ptr<byte_stream> stream);

  /// The state of this node, in words.
  std::string description() const;

private:
  struct lead_lost {};
  using event = std::variant<wire::node_mail, lead_lost>;
  class shown;

  std::optional<wire::node_mail> next(std::chrono::milliseconds patience);
  template <class Message>
  Message await();
  void join_others();
  std::shared_ptr<control_line> line_to(int node, std::unique_ptr<byte_stream> stream);
  std::unique_ptr<ensemble, end_or_leave>
  make_ensemble(const std::shared_ptr<const run_plan>& plan, known_groups groups);
  void perform(const std::shared_ptr<const run_plan>& plan, known_groups groups);
  void work(ensemble& here);
  static bool answer(ensemble& here, const wire::node_mail& what);
  void come_home(ensemble& here);
  void beat();
  void lose(int node, const std::string& why);

  /// Routers of runs whose actors could not be ended.
  static std::vector<std::shared_ptr<mailroom>> left_;

  const player_means& means_;
  mail::prepare facts_;
  session_id session_;
  std::shared_ptr<control_line> lead_;
  inbox<event> inbox_;
  std::atomic<nanoseconds> heard_lead_;
  std::atomic<bool> lead_gone_ = false;
  std::atomic<int> probes_ = 0; // of the clock, by the leader

  std::mutex lock_;
  std::condition_variable news_;
  std::optional<layer_values> layers_; // declared before `router_`, which fills the
                                       // values
  std::shared_ptr<mailroom> mail_;
  std::map<int, std::shared_ptr<control_line>> lines_; // to other nodes
  const std::atomic<bool>* stop_ = nullptr;            // of run()
  std::set<std::pair<int, greeting::purpose>> joined_; // connections of other nodes
  ensemble* here_ = nullptr;                           // for beats
  bool over_ = false;
  std::thread beats_;
};

} // namespace troupe
