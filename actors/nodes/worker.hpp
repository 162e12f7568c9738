// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/connector.hpp"
#include "actors/nodes/message_router.hpp"
#include "actors/nodes/receive_queue.hpp"
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
struct worker_services {
  /// Makes the plan that a leader describes, within the limits of the node. The error
  /// says why the node refuses the plan. Called on the thread of run().
  std::function<tl::expected<run_plan, std::string>(const mail::prepare&)> plan;

  /// Opens connections to other nodes; not null, and outlives the workers.
  connector* connections = nullptr;
};

/// Runs a node's part of one run: the ranks in this process.
class worker {
public:
  /// \param leader the control line that `request` came on
  /// \param services outlives this object
  /// \throws no_thread
  worker(const worker_services& services, mail::prepare request,
         std::shared_ptr<control_line> leader);
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  /// Runs until the run ends, the leader is lost, `stop` is set, or an error ends the
  /// node's part. Reports errors to the leader. Called once.
  /// \param stop outlives the call; may be null
  void run(const std::atomic<bool>* stop = nullptr);

  // Called on other threads than run().

  /// Handles a frame of the leader's control line. An invalid message of
  /// control_frame::kind::node, or a clock probe after the first 1024, acts as
  /// lose_leader(). An invalid message for an actor is reported to the leader. Messages
  /// for actors are dropped until run() has made the plan.
  void handle(control_frame frame);
  /// Makes run() return soon, because the leader is lost. Does not wait for run().
  void lose_leader();
  /// True if the greeting has the run's session and generation, and the sender connects
  /// to this node. Such senders are nodes of lower numbers, and the leader for the
  /// tensor link.
  bool expects(const greeting& hello) const;
  /// Adds a connection of another node, or the leader's tensor link. Drops a second
  /// connection of the same kind from the same sender. Also drops any connection before
  /// run() has made the plan.
  /// \pre expects(hello)
  void join(const greeting& hello, std::unique_ptr<byte_stream> stream);

  /// The state of this node, in words: "executes ranks of a run as node 1 of 2".
  std::string description() const;

private:
  struct leader_lost {};
  using event = std::variant<wire::node_message, leader_lost>;
  class visible_run;

  std::optional<wire::node_message> next(std::chrono::milliseconds timeout);
  template <class Message>
  Message await();
  void join_others();
  std::shared_ptr<control_line> line_to(int node, std::unique_ptr<byte_stream> stream);
  std::unique_ptr<local_run, end_or_leave>
  make_ensemble(const std::shared_ptr<const run_plan>& plan, known_groups groups);
  void perform(const std::shared_ptr<const run_plan>& plan, known_groups groups);
  void work(local_run& local);
  static bool answer(local_run& local, const wire::node_message& message);
  void shut_down(local_run& local);
  void beat();
  void lose(int node, const std::string& why);

  static std::mutex abandoned_lock_;
  /// Routers of runs whose actors could not be ended; kept until the process ends.
  static std::vector<std::shared_ptr<message_router>> abandoned_;

  const worker_services& services_;
  mail::prepare facts_;
  session_id session_;
  std::shared_ptr<control_line> leader_;
  receive_queue<event> receive_queue_;
  std::atomic<nanoseconds> last_leader_message_;
  std::atomic<bool> leader_lost_ = false;
  std::atomic<int> probes_ = 0; // of the clock, by the leader

  std::mutex lock_;
  std::condition_variable news_;
  std::optional<layer_values> layers_; // declared before `router_`, which fills the
                                       // values
  std::shared_ptr<message_router> router_;
  std::map<int, std::shared_ptr<control_line>> lines_; // to other nodes
  const std::atomic<bool>* stop_ = nullptr;            // of run()
  std::set<std::pair<int, greeting::purpose>> joined_; // by join(): sender and purpose
  local_run* local_run_ = nullptr;                     // for beats
  bool is_done_ = false;
  std::thread beats_;
};

} // namespace troupe
