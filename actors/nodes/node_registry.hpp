// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/control_lines.hpp"
#include "actors/nodes/node_order.hpp"
#include "actors/run/awake_time.hpp"
#include "actors/run/run_status.hpp"
#include "actors/run/stall.hpp"
#include "messaging/mail/nodes.hpp"
#include "messaging/wire/codec.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// The leader's view of the nodes of a run: progress, failures, clocks and reports.

namespace troupe {

/// A node was lost, or cannot take part.
struct node_failure : std::runtime_error {
  explicit node_failure(const std::string& why, bool loses = false)
    : std::runtime_error(why), is_loss(loses) {
    // nop
  }

  /// True if the node had answered and then was lost. So the address is right.
  bool is_loss;
};

/// A refusal that a new attempt cannot change: options, files or versions must change
/// first.
struct lasting_refusal : node_failure {
  using node_failure::node_failure;
};

/// Nodes that cannot form one run: bits would differ, or two addresses lead to one
/// node.
struct nodes_differ : lasting_refusal {
  using lasting_refusal::lasting_refusal;
};

/// The user has ended the wait for nodes, by the flag `interrupted`.
struct ended_while_waiting : std::runtime_error {
  ended_while_waiting() : std::runtime_error("ended while the run waited for nodes") {
    // nop
  }
};

/// The leader's knowledge of the nodes of a run: each node's progress, silence and
/// clock. Nodes are numbered from 1. A thread of this object sends beats to nodes and
/// detects silent ones. Thread-safe, except end() and the destructor.
class node_registry {
public:
  /// A node's progress, in this order: its identity is known, its plan is prepared, it
  /// is connected to the other nodes, and it is ready to start.
  enum class step : std::uint8_t { none, known, prepared, connected, ready };

  /// \param names of the nodes, with their ranks: "node a:4242 (rank 0)"
  /// \param failure_timeout time without a message after which a node is lost
  /// \param on_wait called with a sentence if a node executes another run; may be
  /// empty. The thread is that of receive(), and the function must not call this object
  /// \throws no_thread
  node_registry(std::vector<std::string> names,
                std::chrono::milliseconds failure_timeout,
                std::function<void(const std::string&)> on_wait);
  ~node_registry();
  node_registry(const node_registry&) = delete;
  node_registry& operator=(const node_registry&) = delete;

  /// Adds the control line of a node; messages can be sent to that node from now on.
  void add(int node, std::shared_ptr<control_line> line);

  /// Handles a message of a node. A message that only a leader sends, or a step out of
  /// order, makes the node a lost one. A refusal is a failure of the node.
  void receive(int node, wire::node_message message);

  /// Notes that a node is alive, because the node has sent a message for an actor.
  void note(int node);

  /// Notes that a node's control line, or the tensor link to that node, has ended. The
  /// end of a line is a failure of the node immediately. The end of a link becomes a
  /// failure of the node after 1 s, or after the failure timeout if shorter, unless the
  /// line ends first. Meanwhile the ends of other links may be ignored.
  /// \param is_link true for the link, whose end is ignored after end(): nodes close
  /// links first
  void lose(int node, const std::string& why, bool is_link = false);

  /// Sends a message to a node; drops the message if the node is lost or has no line.
  void send(int node, const wire::node_message& message);
  /// Calls send() for every node.
  void send_all(const wire::node_message& message);

  /// Waits until all nodes, or only node `number`, have reached `progress`. Returns
  /// without any check if the nodes have reached this step before the call. If several
  /// nodes failed, a failure that is no loss is thrown first.
  /// \throws node_failure or lasting_refusal if any node, awaited or not, fails before
  /// the step is reached
  /// \throws ended_while_waiting if `interrupted` is set during the wait
  /// \param interrupted may be null
  void await(step progress, const std::atomic<bool>* interrupted,
             std::optional<int> number = {});

  /// The identities of all nodes, by node number.
  /// \pre all nodes have reached step::known
  std::vector<node_identity> identities() const;

  /// The facts that a node has reported.
  /// \pre the node has reached step::prepared
  mail::prepared facts(int number) const {
    const std::lock_guard guard{lock_};
    return member_at(number).facts;
  }

  /// The ids that a node has made for groups of GPUs.
  /// \pre the node has reached step::connected
  std::vector<group_id> ids(int number) const {
    const std::lock_guard guard{lock_};
    return member_at(number).ids;
  }

  /// Measures the clock offsets of nodes on other machines (this_machine()): 32 probes
  /// for each node, one after another, with up to 100 ms for each answer. The fastest
  /// answer gives the offset. Nodes without an answer keep the offset 0.
  /// \pre all nodes have reached step::prepared
  void probe_clocks();

  /// Converts a time of this machine's steady clock to a node's steady clock, with the
  /// offset that probe_clocks() has measured.
  nanoseconds time_on(int node, nanoseconds local_time) const;

  /// Upper bound on the error between the clocks of any two nodes, in nanoseconds; 0
  /// before probe_clocks(). Nodes that answered no probe are left out.
  nanoseconds clock_doubt() const;

  /// Starts the run: from now on a lost node is a failure of the run. Failures of nodes
  /// before the call are failures of the run, too.
  /// \param status outlives the call of end()
  void begin(run_status& status);

  /// The least severe verdict of all nodes, by each node's last beat: a run has stalled
  /// only if all nodes report a stall.
  stall_rule::verdict look() const;
  /// The texts of all nodes' last beats about the operations that the devices execute.
  std::string at_work() const;

  /// Ends the run on all nodes and closes all lines. After begin(), first waits for the
  /// reports of the nodes that have not failed. This wait takes at most the failure
  /// timeout, or 500 ms if that is longer. Returns the reports; none at later calls.
  std::vector<mail::node_report> end();

  /// True if a node is lost.
  bool is_gone(int node) const;

  /// True if a node was lost after begin(), or had failed before begin(). False until
  /// begin() is called.
  bool has_lost() const;

private:
  struct node {
    std::string name;
    std::shared_ptr<control_line> line;
    nanoseconds last_message = 0; // steady time of the last message
    step progress = step::none;
    std::string fault; // empty: none
    bool gone = false;
    bool answered = false; // has sent a message
    bool is_loss = false;  // the failure is the loss of a node that had answered
    bool lasts = false;    // a new attempt cannot change the failure
    silence silent;
    stall_rule::verdict verdict = stall_rule::verdict::fine;
    std::string at_work;
    node_identity identity{};
    mail::prepared facts;
    std::vector<group_id> ids;
    nanoseconds offset = 0;
    nanoseconds best_round_trip = -1;
    std::set<nanoseconds> probes; // clock probes without an answer, by the time of
                                  // sending
    std::optional<mail::node_report> report;
  };

  /// A report that one node has lost the link to another node.
  struct suspicion {
    int reporter;
    int suspect_node; // 0: the leader
    std::string why;
    bool is_only_end;           // the report says only that a line has ended
    nanoseconds remaining_time; // until the watch thread reports a failure
  };

  struct reading;

  void fail(node& member, const std::string& why, bool is_lost);
  static std::string loss_of(const node& member, const std::string& why);
  void suspect(int reporter, const mail::lost_node& report, bool by_leader = false);
  void confirm_suspicion();
  void throw_fault() const;
  void keep_watch();
  bool is_node(int number) const { return number >= 1 && number <= std::ssize(nodes_); }
  node& member_at(int number) { return nodes_[static_cast<std::size_t>(number) - 1]; }
  const node& member_at(int number) const {
    return nodes_[static_cast<std::size_t>(number) - 1];
  }

  std::chrono::milliseconds timeout_;
  std::function<void(const std::string&)> on_wait_;
  mutable std::mutex lock_;
  std::condition_variable news_;
  std::vector<node> nodes_;
  std::optional<suspicion> suspected_;
  run_status* status_ = nullptr; // while the run is running
  bool has_lost_ = false;
  bool ending_ = false; // the end of the run was sent to nodes
  bool stopping_ = false;
  std::thread watch_;
};

} // namespace troupe
